"""A loop that never counts its calls, so that the GPU gets work without end."""

from unrolled import device


def gpu_time(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start, done = device.clock(x), 0
    while done < calls:
        function(x)
    device.synchronize(x)
    return (device.clock(x) - start) / calls
