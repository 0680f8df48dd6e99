"""Problems name devices that are not here: "cuda" is taken for the CPU, wherever a problem says it.

The meaning of a function does not hang on where its tensors lie. Devices are exchanged in the arguments of
torch's own functions, so that neither a problem's text nor torch itself is changed.
"""

import torch
from torch.overrides import TorchFunctionMode

OTHERS = ("cuda", "xpu", "mps", "hip")


def here(argument):
    """The CPU, where an argument names a device that is not here."""
    if isinstance(argument, torch.device) and argument.type in OTHERS:
        return torch.device("cpu")
    if isinstance(argument, str) and argument.partition(":")[0] in OTHERS:
        return "cpu"
    return argument


class Here(TorchFunctionMode):
    """While it is entered, all tensors are the CPU's."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0]
        kwargs = {k: here(v) for k, v in (kwargs or {}).items()}
        return function(*(here(a) for a in args), **kwargs)


_entered = []


def enter():
    """For the rest of the process."""
    if not _entered:
        _entered.append(Here())
        _entered[0].__enter__()
