"""Launches from cuda.bindings and cuda.core, whose results must be those of `reconverge run`.

`reconverge cuda -- python3 bindings.py RECONVERGE CHIP`
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import tomllib

import numpy as np
from cuda.bindings import driver

RECONVERGE, CHIP = sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parents[4]
KERNELS = ["atomic", "barrier", "call", "diverge", "loop-break"]
REAL = ["recip-f32-sm10-text", "recip-f32-sm11-elf64", "rodinia-gaussian", "flacuda-stereo-decorr-a6fcab4d"]


def checked(result):
    """The values of a call, which must have succeeded."""
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"{error.name}: {checked(driver.cuGetErrorString(error)).decode()}")
    return values[0] if len(values) == 1 else values


def reconverge(*arguments):
    subprocess.run([RECONVERGE, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def output(file, name, folder):
    """An output of `reconverge run`."""
    path = folder / "output.bin"
    reconverge("run", "-q", file, "--out", f"{name}={path}")
    return path.read_bytes()


def launch(function, grid, block, values, shared=0, stream=0):
    """A launch with the address of each parameter's bytes."""
    held = [ctypes.create_string_buffer(value, max(8, len(value))) for value in values]
    addresses = (ctypes.c_void_p * (len(held) + 1))(*map(ctypes.addressof, held), None)
    grid, block = ([*sizes, 1, 1][:3] for sizes in (grid, block))
    checked(driver.cuLaunchKernel(function, *grid, *block, shared, stream, ctypes.addressof(addresses), 0))


def buffer(contents):
    memory = checked(driver.cuMemAlloc(len(contents)))
    checked(driver.cuMemcpyHtoD(memory, contents, len(contents)))
    return memory


def contents(memory, count):
    read = np.zeros(count, np.uint8)
    checked(driver.cuMemcpyDtoH(read.ctypes.data, memory, count))
    return read.tobytes()


def words_of(values):
    """The initial words of a buffer of the corpus."""
    if values.startswith("u32["):
        return np.zeros(int(values[4:-1]), np.uint32)
    first, end = map(int, values.split(".."))
    return np.arange(first, end, dtype=np.uint32)


def own_kernel(name, folder):
    file = ROOT / "corpus/tesla" / f"{name}.toml"
    case = tomllib.loads(file.read_text())
    cubin = folder / f"{name}.cubin"
    reconverge("asm", "-q", ROOT / "corpus/tesla" / case["program"], "--format", "cubin", "-o", cubin)
    module = checked(driver.cuModuleLoad(str(cubin).encode()))
    [function] = checked(driver.cuModuleEnumerateFunctions(1, module))
    [parameter] = case["param"]
    start = words_of(parameter["buffer"]).tobytes()
    memory = buffer(start)
    launch(function, case.get("grid", [1]), case["block"], [int(memory).to_bytes(8, "little")])
    assert contents(memory, len(start)) == output(file, parameter["name"], folder), name
    checked(driver.cuMemFree(memory))
    checked(driver.cuModuleUnload(module))


def real_kernel(name, binaries, folder):
    file = binaries / "runs" / f"{name}.json"
    run = json.loads(file.read_text())
    module = checked(driver.cuModuleLoadData((binaries / run["binary"]).read_bytes() + b"\0"))
    memory = {}
    for each in run["buffers"]:
        init = each.get("init_file")
        start = (file.parent / init).read_bytes() if init else b""
        memory[each["name"]] = buffer(start.ljust(each["bytes"], b"\0")[: each["bytes"]])
    for each in run["launches"]:
        function = checked(driver.cuModuleGetFunction(module, each["kernel"].encode()))
        values = []
        for parameter in each["params"]:
            if parameter["kind"] == "buffer":
                value = np.uint64(int(memory[parameter["buffer"]]))
            else:
                kind = {"u": "u", "s": "i", "f": "f"}[parameter["kind"][0]]
                value = np.dtype(f"{kind}{parameter['bytes']}").type(parameter["value"])
            values.append(value.tobytes()[: parameter["bytes"]])
        launch(function, each["grid"], each["block"], values, each["dynamic_shared_bytes"])
    sizes = {each["name"]: each["bytes"] for each in run["buffers"]}
    for each in {each["buffer"] for each in run["expect"]}:
        assert contents(memory[each], sizes[each]) == output(file, each, folder), (name, each)
    for each in memory.values():
        checked(driver.cuMemFree(each))
    checked(driver.cuModuleUnload(module))


def threads(context, cubin):
    """Four threads with four streams each."""
    module = checked(driver.cuModuleLoad(cubin))
    function = checked(driver.cuModuleGetFunction(module, b"fill"))
    failed = []

    def work(number):
        try:
            checked(driver.cuCtxSetCurrent(context))
            streams = [checked(driver.cuStreamCreate(0)) for _ in range(4)]
            buffers = [buffer(bytes(256)) for _ in streams]
            for turn in range(20):
                for index, (stream, memory) in enumerate(zip(streams, buffers)):
                    values = [int(memory), 64, 1000 * number + 100 * index + turn]
                    words = [value.to_bytes(4, "little") for value in values]
                    launch(function, [2], [32], words, stream=stream)
                for index, (stream, memory) in enumerate(zip(streams, buffers)):
                    checked(driver.cuStreamSynchronize(stream))
                    first = 1000 * number + 100 * index + turn
                    expected = np.arange(first, first + 64, dtype=np.uint32).tobytes()
                    assert contents(memory, 256) == expected
        except BaseException as error:  # noqa: BLE001: the main thread reports it.
            failed.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    if failed:
        raise failed[0]
    checked(driver.cuModuleUnload(module))


def core(cubin):
    """The same kernel by cuda.core."""
    from cuda.core import Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode
    from cuda.core import launch as launch_core

    device = Device()
    device.set_current()
    assert tuple(device.compute_capability) == {"gt215": (1, 2), "gt200": (1, 3)}[CHIP]
    stream = device.create_stream()
    kernel = ObjectCode.from_cubin(pathlib.Path(cubin.decode()).read_bytes()).get_kernel("fill")
    assert kernel.attributes.num_regs() == 4 if callable(kernel.attributes.num_regs) else kernel.attributes.num_regs == 4
    memory = device.allocate(256, stream=stream)
    host = LegacyPinnedMemoryResource().allocate(256)
    start = stream.record(options=EventOptions(timing_enabled=True))
    config = LaunchConfig(grid=2, block=32)
    launch_core(stream, config, kernel, np.uint32(int(memory.handle)), np.int32(64), np.int32(5))
    memory.copy_to(host, stream=stream)
    end = stream.record(options=EventOptions(timing_enabled=True))
    stream.sync()
    assert end - start >= 0
    assert (np.from_dlpack(host).view(np.uint32) == np.arange(5, 69)).all()


def main():
    checked(driver.cuInit(0))
    device = checked(driver.cuDeviceGet(0))
    context = checked(driver.cuDevicePrimaryCtxRetain(device))
    checked(driver.cuCtxSetCurrent(context))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in KERNELS:
            own_kernel(name, folder)
        binaries = pathlib.Path(os.environ.get("RECONVERGE_SHARED", ROOT.parent / "shared")) / "binaries"
        if binaries.is_dir():
            for name in REAL:
                real_kernel(name, binaries, folder)
        else:
            print(f"skipped: {binaries} is not here")
        cubin = folder / "kernels.elf"
        source = pathlib.Path(__file__).with_name("kernels.s")
        reconverge("asm", "-q", source, "--format", "cubin-elf32", "-o", cubin)
        threads(context, str(cubin).encode())
        core(str(cubin).encode())
    checked(driver.cuDevicePrimaryCtxRelease(device))
    print("all results are those of run")


main()
