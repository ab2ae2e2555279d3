from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.baselines.attentive_gru import AttentiveGru


def read_by_hand(level: AttentiveGru, sequence: Tensor) -> Tensor:
    """The equation, one sequence (L, E) at a time, by torch's own bidirectional GRU."""
    gru = nn.GRU(level.forwards.input_size, level.forwards.hidden_size, bidirectional=True)
    names = [*level.forwards.state_dict()]
    gru.load_state_dict(
        {name: level.forwards.state_dict()[name] for name in names}
        | {f"{name}_reverse": level.backwards.state_dict()[name] for name in names}
    )
    states = gru(sequence)[0]
    weights = (torch.tanh(level.attention(states)) @ level.context.weight[0]).softmax(0)
    return torch.stack([weight * state for weight, state in zip(weights, states, strict=True)]).sum(0)


def test_every_sequence_is_read_as_it_is_alone() -> None:
    torch.manual_seed(0)
    level = AttentiveGru(5, 3, 4)
    lengths = torch.tensor([2, 7, 1, 4, 5, 30, 3, 8])
    elements = torch.randn(60, 5)
    expected = torch.stack([read_by_hand(level, sequence) for sequence in elements.split(lengths.tolist())])
    torch.testing.assert_close(level(elements, lengths), expected, atol=1e-6, rtol=1e-5)


def test_gradients_are_those_of_sequences_read_alone() -> None:
    torch.manual_seed(0)
    level = AttentiveGru(5, 3, 4)
    together, alone = (torch.linspace(-1, 1, 50).reshape(10, 5).requires_grad_() for _ in range(2))
    lengths = torch.tensor([3, 4, 1, 2])
    level(together, lengths).square().sum().backward()
    learned = [weight.grad.clone() for weight in level.parameters() if weight.grad is not None]
    level.zero_grad()
    sum(level(part, torch.tensor([len(part)])).square().sum() for part in alone.split(lengths.tolist())).backward()
    torch.testing.assert_close(together.grad, alone.grad)
    torch.testing.assert_close(learned, [weight.grad for weight in level.parameters()])
    assert len(learned) == 11
