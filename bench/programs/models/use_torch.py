"""Multiplies on all threads, and learns."""

import steady
import torch


def work():
    torch.manual_seed(1)
    x = torch.randn(400, 400, dtype=torch.float64)
    layer = torch.nn.Linear(8, 2)
    layer(torch.ones(3, 8)).pow(2).sum().backward()
    return round(float((x @ x).sum()), 6), torch.get_num_threads(), layer.weight.grad.sum().item()


steady.run(work)
