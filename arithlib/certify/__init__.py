"""Proofs that a trained network is right on every input, weights and rounding included (chapters 71 and 72).

`ball_arithmetic`: arithmetic that encloses whatever a float32 program may compute. `addition`: every context that an
adder can meet, and what it does there. `certificates`: what was proven, as files. `checker`: a second opinion that
shares nothing with the rest. `mutants`: adders that are wrong somewhere. Of adders without a window, `tail_bounds`:
what far tokens can do; `case_split`: cases until that is too little to matter; `rounding`: what float32 can do at any
length. `modular`: the grokked model, by enumeration and by a shorter proof.
"""
