"""Proofs that a trained network is right on every input, weights and rounding included (chapter 72).

`balls`: arithmetic that encloses whatever a float32 program may compute. `addition`: every context that an adder can
meet, and what it does there. `certificates`: what was proven, as files. `checker`: a second opinion that shares
nothing with the rest. `mutants`: adders that are wrong somewhere. `leakage`: what far tokens can do to adders without
a window. `modular`: the grokked model, by enumeration and by a shorter proof.
"""
