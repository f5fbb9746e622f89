"""Proofs that a trained network is right on every input, weights and rounding included (chapter 72).

`balls`: arithmetic that encloses whatever a float32 program may compute. `modular`: all residues of the grokked
model, by enumeration and by a shorter proof.
"""
