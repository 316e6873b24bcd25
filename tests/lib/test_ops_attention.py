"""Attention: every form against PyTorch in float64, gradients, masks, blocks of any size, memory; what is refused."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Call

from unrolled import ops, simgpu
from unrolled.device import to_host
from unrolled.ops.attention import online

RNG = np.random.default_rng(14)
N, H, T, D = 2, 3, 5, 4
LENGTHS = np.array([3, 0])


def floats(*shape: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=shape).astype(dtype)


Q, K, V, GRAD = (floats(N, H, T, D) for _ in "qkvg")
KEPT = ops.attention_with_logsumexp(Q, K, V, LENGTHS, True)
KEPT[1][1] = 99  # in place of inf, which is no integer


def masked(function: Any, *arrays: Any) -> Call:
    return Call(function, arrays, (True,), integers=(LENGTHS,))


CALLS = {
    "attention": Call(ops.attention, (Q, K[:, :, :3], V[:, :, :3])),
    "attention, masked": masked(ops.attention, Q, K, V),
    "attention_with_logsumexp": Call(ops.attention_with_logsumexp, (Q, K, V), integers=(LENGTHS + 1,)),
    "attention_backward": masked(ops.attention_backward, GRAD, Q, K, V, *KEPT),
    "attention_loops": masked(ops.attention_loops, Q, K, V),
    "attention_plain": masked(ops.attention_plain, Q, K, V),
    "attention_plain_backward": Call(ops.attention_plain_backward, (GRAD, Q, K, V, ops.attention_weights(Q, K))),
    "attention_weights": masked(ops.attention_weights, Q, K),
}


def plain(grad: Any, q: Any, k: Any, v: Any, lengths: Any, causal: bool) -> list[Any]:
    """The output and the gradients by q, k and v, with all weights kept."""
    back = ops.attention_plain_backward(grad, q, k, v, ops.attention_weights(q, k, lengths, causal))
    return [ops.attention_plain(q, k, v, lengths, causal), *back]


def blocks(grad: Any, q: Any, k: Any, v: Any, lengths: Any, causal: bool) -> list[Any]:
    y, logsumexp = ops.attention_with_logsumexp(q, k, v, lengths, causal)
    return [y, *ops.attention_backward(grad, q, k, v, y, logsumexp, lengths, causal)]


def on_gpu(*arguments: Any) -> list[Any]:
    there = (simgpu.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments)
    return [to_host(x) for x in blocks(*there)]


def pytorchs(grad: Any, q: Any, k: Any, v: Any, lengths: Any, causal: bool) -> list[Any]:
    """What PyTorch gives in float64; 0 for queries that may look at no key."""
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    q, k, v = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, k, v))
    n, t, s = len(q), q.shape[2], k.shape[2]
    many = torch.full((n,), s) if lengths is None else torch.tensor(lengths)
    seen = (torch.arange(s) < many[:, None, None, None]).expand(n, 1, t, s)
    seen = seen.tril() if causal else seen
    some = seen.any(-1, keepdim=True)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen | ~some) * some
    y.backward(torch.tensor(grad, dtype=torch.float64))
    return [y.detach().numpy(), *(x.grad.numpy() for x in (q, k, v))]


def case(
    n: int, h: int, t: int, s: int, d: int, lengths: bool, causal: bool, dtype: str = "float64"
) -> tuple[Any, ...]:
    """Arguments of the functions above. The first of several samples has no keys."""
    rng = np.random.default_rng(n + h + t + s + d)
    s = t if causal else s
    arrays = (rng.normal(size=(n, h, size, d)).astype(dtype) for size in (t, t, s, s))
    many = np.concatenate([np.zeros(n - 1, int), [max(1, s - 2)]]) if lengths else None
    return *arrays, many, causal


def agree(found: list[Any], expected: list[Any], tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@settings(max_examples=15, deadline=None)
@given(
    *(st.integers(1, 3), st.integers(1, 2), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1, 3, 8, 128])),
    *(st.booleans(), st.booleans(), st.sampled_from([20, 50, 400]), st.sampled_from([4, 7, 100])),
)
def test_every_form_is_pytorch(
    n: int, h: int, t: int, s: int, d: int, lengths: bool, causal: bool, scores: int, keys: int
) -> None:
    """With blocks of any number of scores, of which few fit the sizes."""
    arguments = case(n, h, t, s, d, lengths, causal)
    expected = pytorchs(*arguments)
    agree(plain(*arguments), expected, 1e-10)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CPU", "GPU"):
            patch.setattr(online, f"{name}_BYTES", 8 * scores)
            patch.setattr(online, f"{name}_KEYS", keys)
        agree(blocks(*arguments), expected, 1e-10)
        agree(on_gpu(*arguments), expected, 1e-10)
    if h * t * s * d < 500:
        agree([ops.attention_loops(*arguments[1:])], expected[:1], 1e-10)


@pytest.mark.parametrize("form", [plain, blocks, on_gpu])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("float16", 3e-3)])
@pytest.mark.parametrize(("lengths", "causal"), [(False, True), (True, False)])
def test_sums_are_in_float32(form: Any, dtype: str, tolerance: float, lengths: bool, causal: bool) -> None:
    """Over several blocks; what is kept for the backward pass is float32, too."""
    arguments = case(2, 1, 1100, 1300, 24, lengths, causal, dtype)
    found = form(*arguments)
    assert {x.dtype.name for x in found} == {dtype}
    agree(found, pytorchs(*arguments), tolerance)
    assert ops.attention_with_logsumexp(*arguments[1:])[1].dtype == np.float32


@pytest.mark.parametrize("form", [plain, blocks, on_gpu])
def test_queries_without_keys_give_zeros_and_scores_of_any_size_give_numbers(form: Any) -> None:
    none = np.zeros(N, int)
    for zeros in form(GRAD, Q, K, V, none, False):
        assert not zeros.any()
    large = form(GRAD, 3e4 * Q, K, V, None, False)  # exp(89) is beyond float32
    agree(large[:1], pytorchs(GRAD, 3e4 * Q, K, V, None, False)[:1], 1e-4)
    assert all(np.isfinite(x).all() for x in large)
    assert np.isinf(ops.attention_with_logsumexp(Q, K, V, none)[1]).all()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_by_differences(causal: bool) -> None:
    arguments = case(2, 2, 4, 4, 3, True, causal)
    grad, q, k, v, lengths, _ = arguments

    def loss(arrays: Any) -> Any:
        return (ops.attention(arrays[0], arrays[1], arrays[2], lengths, causal) * grad).sum()

    expected = ops.numeric_gradient(loss, np.stack([q, k, v]))
    agree(blocks(*arguments)[1:], list(expected), 1e-7)


def peak(function: Any, *arguments: Any) -> int:
    tracemalloc.start()
    try:
        with threadpoolctl.threadpool_limits(1, "blas"):  # each thread has a block of its own
            function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_blocks_take_an_eighth_of_the_memory() -> None:
    q, k, v = (floats(1, 1, 2048, 64) for _ in "qkv")
    most = peak(ops.attention_plain, q, k, v) / 8
    assert peak(ops.attention, q, k, v) <= most
    y, logsumexp = ops.attention_with_logsumexp(q, k, v)
    most = peak(plain, q, q, k, v, None, False) / 8
    assert peak(ops.attention_backward, q, q, k, v, y, logsumexp) <= most


def test_the_simulated_gpu_has_one_launch_and_keeps_no_scores() -> None:
    for dtype, kernels in (("float32", ["attention"]), ("float16", ["attention"]), ("float64", [])):
        q = simgpu.asarray(floats(1, 2, 64, 8, dtype=dtype))
        with simgpu.trace() as trace:
            ops.attention(q, q, q, causal=True)
        assert [launch.op for launch in trace.launches if launch.op == "attention"] == kernels
        assert len(trace.launches) == 2 or dtype == "float64"


REFUSED = [
    ((Q[0], K, V), r"q has shape \(3, 5, 4\); expected 4 axes \(N, H, T, D\)"),
    ((Q, K[:, :2], V), r"k has shape \(2, 2, 5, 4\); expected \(2, 3, 5, 4\) to fit q \(2, 3, 5, 4\)"),
    ((Q, K, V[:, :, :2]), r"v has shape \(2, 3, 2, 4\); expected \(2, 3, 5, 4\) to fit k"),
    ((Q, K[:, :, :0], V[:, :, :0]), r"k has shape \(2, 3, 0, 4\); expected at least one key"),
    ((Q, K[:, :, :2], V[:, :, :2], None, True), r"k has shape \(2, 3, 2, 4\) with S = 2, but q .* causal needs T = S"),
    ((Q, K, V, LENGTHS[:1]), r"lengths has shape \(1,\); expected \(2,\) to fit q \(2, 3, 5, 4\)"),
    ((Q, K, V, LENGTHS / 2), "lengths are float64; expected integers"),
    ((Q, K, V, LENGTHS + 3), r"lengths are 3 to 6; expected 0 to 5 for k of shape \(2, 3, 5, 4\)"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
@pytest.mark.parametrize("function", [ops.attention, ops.attention_plain, ops.attention_loops])
def test_what_does_not_fit_is_named(function: Any, arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        function(*arguments)


def test_what_does_not_fit_the_way_back_is_named() -> None:
    y, logsumexp = KEPT
    for wrong in ((GRAD[:1], y, logsumexp), (GRAD, y[..., :2], logsumexp), (GRAD, y, logsumexp[0])):
        with pytest.raises(ValueError, match=r"(grad|y|logsumexp) has shape .* to fit q"):
            ops.attention_backward(wrong[0], Q, K, V, *wrong[1:])
    with pytest.raises(ValueError, match=r"weights has shape \(2, 3, 5\); expected \(2, 3, 5, 5\) to fit q .* and k"):
        ops.attention_plain_backward(GRAD, Q, K, V, logsumexp)
