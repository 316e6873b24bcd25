"""Lesson 06: in what a student of the sample class differs from the solution, a class a student."""

from unrolled import device


class slow:
    """Right, and slow on a GPU: a product for each image, and a look at the loss in each step."""

    train_epoch = {
        "losses[step] = loss": "if loss > 1000:\n            raise ValueError(loss)\n        losses[step] = loss"
    }

    conv2d_port = {
        "y = weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1)": (
            "y = xp.concatenate([weight.reshape(o, -1) @ columns[:, :, :, image].reshape(c * kh * kw, -1)\n"
            "                        for image in range(n)], axis=1)"
        )
    }


class off_by_one:
    """A size without its + 1, loops that end one step early, and a clock that starts one call too early."""

    break_even = {"2 * latency + uses": "latency + uses"}
    conv2d_port = {"- kh + 1, w + 2 * padding - kw + 1": "- kh, w + 2 * padding - kw"}
    max_pool2d_port = {"for j in range(k)": "for j in range(k - 1)"}
    gpu_time = {
        "    function(x)\n    device.synchronize(x)\n    start": "    device.synchronize(x)\n    start",
        "range(calls)": "range(calls + 1)",
    }
    train_epoch = {"range(0, len(images), batch_size)": "range(0, len(images) - batch_size + 1, batch_size)"}


class another_way:
    """Right, by other ways: one gather, windows as an axis, events in place of the clock, logarithms."""

    def activation(kind, x):
        xp = device.array_module(x)
        ways = {
            "step": lambda: xp.sign(x).clip(0, 1),
            "relu": lambda: (x + abs(x)) / 2,
            "leaky_relu": lambda: xp.where(x > 0, x, x / 100),
            "sigmoid": lambda: (1 + xp.tanh(x / 2)) / 2,
        }
        return ways[kind]()

    def conv2d_port(x, weight, bias, padding=0):
        xp = device.array_module(x)
        (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
        h, w = h + 2 * padding, w + 2 * padding
        padded = xp.zeros((n, c, h, w), dtype=x.dtype)
        padded[:, :, padding : h - padding, padding : w - padding] = x
        tops = xp.arange(h - kh + 1)[:, None] * w + xp.arange(w - kw + 1)  # where each window begins
        places = (xp.arange(c)[:, None, None] * h + xp.arange(kh)[:, None]) * w + xp.arange(
            kw
        )  # and each place inside it
        columns = padded.reshape(n, -1)[:, places.reshape(-1, 1) + tops.reshape(-1)]
        return (weight.reshape(o, -1) @ columns + bias[:, None]).reshape(n, o, *tops.shape)

    def max_pool2d_port(x, kernel_size):
        xp, k = device.array_module(x), kernel_size
        n, c, h, w = x.shape
        oh, ow = h // k, w // k
        windows = x[:, :, : oh * k, : ow * k].reshape(n, c, oh, k, ow, k).swapaxes(3, 4).reshape(n, c, oh, ow, k * k)
        place = windows.argmax(axis=4)
        corner = (xp.arange(oh)[:, None] * w + xp.arange(ow)) * k
        return windows.max(axis=4), corner + place // k * w + place % k

    def gpu_time(function, x, calls=20):
        cuda = device.array_module(x).cuda
        start, end = cuda.Event(), cuda.Event()
        function(x)
        start.record()
        for _ in range(calls):
            function(x)
        end.record()
        end.synchronize()
        return cuda.get_elapsed_time(start, end) / 1000 / calls

    def train_epoch(images, labels, weight, bias, batch_size, rate):
        xp, losses = device.array_module(images), []
        for start in range(0, len(images), batch_size):
            x = images[start : start + batch_size].reshape(-1, weight.shape[1])
            truth = labels[start : start + batch_size, None] == xp.arange(len(bias))
            scores = x @ weight.T + bias
            scores = scores - scores.max(axis=1, keepdims=True)
            logs = scores - xp.log(xp.exp(scores).sum(axis=1, keepdims=True))
            losses.append(-xp.where(truth, logs, 0).sum() / len(x))
            grad = (xp.exp(logs) - truth) * (rate / len(x))
            weight, bias = weight - grad.T @ x, bias - grad.sum(axis=0)
        return weight, bias, xp.stack(losses)
