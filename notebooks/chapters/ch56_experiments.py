"""Decoders of more layers, of which only what chapter 56 measures is kept."""

from dataclasses import dataclass

from arithlib.experiments.decoder import DecoderExperiment
from arithlib.settings import of_kind
from chapters.ch56_layers import measure


@of_kind("decoder-layers")
@dataclass(frozen=True, kw_only=True)
class LayersExperiment(DecoderExperiment):
    """A Decoder on sums, and in its history which of its layers and heads add: (1, ...) each of `measure`."""

    def finish(self, model, run):
        return {name: values[None] for name, values in measure(model, self.sums.data_seed).items()}
