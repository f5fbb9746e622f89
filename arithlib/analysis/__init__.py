"""Looking inside trained models. Everything here computes on the CPU, where loaded checkpoints are."""
