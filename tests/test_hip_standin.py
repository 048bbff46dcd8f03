"""The stand-in libamdhip64.so: what it records and answers, and that it holds under threads and bad input.

The programs are compiled for real, with the hipcc of the prefix that scripts/rocm_prefix.sh assembles.
"""

import ctypes
import json
import os
import random
import re
import struct
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCES = REPOSITORY / "tests" / "hip_standin"
PROGRAMS = SOURCES / "programs"


def run(*command, env=None, check=True, timeout=300):
    # The environment of the person who runs the tests must not choose the device or a record file.
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HIP_STANDIN_", "HIPCC_"))}
    result = subprocess.run(
        [str(word) for word in command],
        env=clean | (env or {}),
        text=True,
        capture_output=True,
        timeout=timeout,
    )
    if check:
        assert result.returncode == 0, f"{command}:\n{result.stdout}{result.stderr}"
    return result


def read_record(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="session")
def prefix():
    return Path(run(REPOSITORY / "scripts/rocm_prefix.sh", "--assemble", "--standin", timeout=900).stdout.strip())


@pytest.fixture(scope="session")
def build(prefix, tmp_path_factory):
    """Compiles a test program once; extra words go to hipcc."""
    directory = tmp_path_factory.mktemp("programs")
    built = {}

    def build(source, *flags, arch="gfx90a"):
        key = (source, arch, *flags)
        if key not in built:
            output = directory / f"{Path(source).stem}_{len(built)}"
            run(prefix / "bin/hipcc", f"--offload-arch={arch}", "-O1", *flags, PROGRAMS / source, "-o", output)
            built[key] = output
        return built[key]

    return build


@pytest.fixture(scope="session")
def genco(build):
    return build("launches.cpp", "--genco")


class Standin:
    """The library by itself, through ctypes."""

    SUCCESS, INVALID_VALUE, INVALID_DEVICE_FUNCTION, NO_DEVICE, INVALID_DEVICE = 0, 1, 98, 100, 101
    INVALID_IMAGE, NO_BINARY_FOR_GPU, FILE_NOT_FOUND, INVALID_HANDLE, NOT_FOUND = 200, 209, 301, 400, 500

    def __init__(self, prefix):
        self.library = ctypes.CDLL(str(prefix / "lib/libamdhip64.so"))
        self.library.hip_standin_launch_json.argtypes = [ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        self.library.hip_standin_launch_json.restype = ctypes.c_size_t
        self.library.hip_standin_launch_count.restype = ctypes.c_size_t

    def __getattr__(self, name):
        return getattr(self.library, name)

    def launches(self):
        found = []
        while size := self.hip_standin_launch_json(len(found), None, 0):
            text = ctypes.create_string_buffer(size + 1)
            assert self.hip_standin_launch_json(len(found), text, size + 1) == size
            found.append(json.loads(text.value))
        return found

    def load(self, path):
        module = ctypes.c_void_p()
        return self.hipModuleLoad(ctypes.byref(module), os.fsencode(path)), module

    def function(self, module, name):
        function = ctypes.c_void_p()
        return self.hipModuleGetFunction(ctypes.byref(function), module, name.encode()), function


@pytest.fixture
def standin(prefix):
    standin = Standin(prefix)
    standin.hip_standin_reset()
    standin.hipSetDevice(0)
    standin.hipGetLastError()
    yield standin
    standin.hip_standin_set_arch(None)
    standin.hip_standin_set_compute_units(0)
    standin.hip_standin_set_recording(1)
    standin.hip_standin_set_record_file(None)
    standin.hip_standin_reset()


# --- Launches -----------------------------------------------------------------------------------------------------


FILL = "_Z4fillILi7EEvPi6Paddedfc"


def test_a_launch_is_recorded_with_shape_stream_and_every_argument_byte(build, tmp_path):
    record = tmp_path / "launches.jsonl"
    result = run(build("launches.cpp"), env={"HIP_STANDIN_RECORD": str(record)})

    first, second = read_record(record)
    padding = b"\xee"
    padded = b"\x01" + 7 * padding + struct.pack("<d", 2) + struct.pack("<h", 3) + 6 * padding
    assert first == {
        "sequence": 0,
        "kernel": FILL,
        "device": 0,
        "arch": "gfx90a:sramecc+:xnack-",
        "stream": 1,
        "grid": [3, 4, 5],
        "block": [64, 2, 1],
        "dynamic_shared_bytes": 128,
        "args": [
            {"name": "", "kind": "global_buffer", "offset": 0, "size": 8, "bytes": struct.pack("<Q", 0x1234).hex()},
            {"name": "", "kind": "by_value", "offset": 8, "size": 24, "bytes": padded.hex()},
            {"name": "", "kind": "by_value", "offset": 32, "size": 4, "bytes": struct.pack("<f", 1.5).hex()},
            {"name": "", "kind": "by_value", "offset": 36, "size": 1, "bytes": b"x".hex()},
        ],
    }
    assert (second["sequence"], second["kernel"], second["stream"]) == (1, "_Z7nothingv", 0)
    assert second["args"] == []
    # The third launch asks for 1025 threads: an error, kept until it is read, and no record.
    invalid = "hipErrorInvalidConfiguration"
    assert result.stdout.split() == ["hipSuccess", "hipSuccess", invalid, invalid, "hipSuccess"]


def test_argument_offsets_and_sizes_are_those_that_llvm_reads(build, prefix, tmp_path):
    record = tmp_path / "launches.jsonl"
    program = build("launches.cpp")
    run(program, env={"HIP_STANDIN_RECORD": str(record)})
    # The compiler's own directory: the prefix may be older than the package that brings llvm-objcopy and llvm-readelf.
    llvm = (prefix / "llvm/bin/clang").resolve().parent
    bundle, image = tmp_path / "bundle", tmp_path / "image"
    run(llvm / "llvm-objcopy", f"--dump-section=.hip_fatbin={bundle}", program, "/dev/null")
    run(
        llvm / "clang-offload-bundler",
        *("--unbundle", "--type=o", "--targets=hipv4-amdgcn-amd-amdhsa--gfx90a"),
        *(f"--input={bundle}", f"--output={image}"),
    )
    notes = run(llvm / "llvm-readelf", "--notes", image).stdout

    for launch in read_record(record):
        description = next(part for part in re.split(r"\n  - (?=\.)", notes) if f"{launch['kernel']}\n" in part)
        expected = [
            tuple(re.search(rf"{key}: +(\S+)", argument)[1] for key in (r"\.offset", r"\.size", r"\.value_kind"))
            for argument in re.findall(r"\.(?:actual|address|offset)[^-]*?\.value_kind: +\S+", description)
        ]
        expected = [entry for entry in expected if not entry[2].startswith("hidden_")]
        recorded = [(str(a["offset"]), str(a["size"]), a["kind"]) for a in launch["args"]]
        assert recorded == expected
    assert len(read_record(record)) == 2


@pytest.mark.parametrize("flags", [(), ("--offload-compress",)], ids=["plain", "compressed"])
def test_each_device_gets_the_code_object_of_its_own_arch(build, tmp_path, flags):
    program = build("launches.cpp", *flags, "--offload-arch=gfx942")
    for arch in ("gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack-", "gfx942"):
        record = tmp_path / f"{arch}.jsonl"
        run(program, env={"HIP_STANDIN_RECORD": str(record), "HIP_STANDIN_ARCH": arch})
        assert [launch["arch"] for launch in read_record(record)] == [arch, arch]


def test_a_feature_that_contradicts_the_device_is_no_code_for_it(build):
    program = build("launches.cpp", arch="gfx90a:xnack+")
    fits = run(program, env={"HIP_STANDIN_ARCH": "gfx90a:sramecc+:xnack+"})
    differs = run(program, env={"HIP_STANDIN_ARCH": "gfx90a:sramecc+:xnack-"})
    assert fits.stdout.split()[:2] == ["hipSuccess", "hipSuccess"]
    assert differs.stdout.split()[:2] == ["hipErrorNoBinaryForGpu", "hipErrorNoBinaryForGpu"]


def test_a_kernel_without_code_for_the_device_is_refused_and_not_recorded(build, tmp_path):
    record = tmp_path / "launches.jsonl"
    result = run(
        build("launches.cpp"), env={"HIP_STANDIN_RECORD": str(record), "HIP_STANDIN_ARCH": "gfx950:sramecc+:xnack-"}
    )
    assert result.stdout.split()[:2] == ["hipErrorNoBinaryForGpu", "hipErrorNoBinaryForGpu"]
    assert not record.exists()


def test_launches_of_many_threads_are_all_recorded_once(build, tmp_path):
    record = tmp_path / "launches.jsonl"
    program = build("threads.cpp")
    environment = {"HIP_STANDIN_RECORD": str(record)}
    processes = [subprocess.Popen([program], env=os.environ | environment) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]

    launches = read_record(record)  # every line is whole
    assert len(launches) == 16000
    assert sorted(launch["sequence"] for launch in launches) == sorted(2 * list(range(8000)))
    arguments = [tuple(int.from_bytes(bytes.fromhex(a["bytes"]), "little") for a in x["args"]) for x in launches]
    assert sorted(arguments) == sorted(2 * [(thread, i, 0) for thread in range(8) for i in range(1000)])
    by_stream = {}
    for launch, (thread, _, _) in zip(launches, arguments, strict=True):
        by_stream.setdefault(launch["stream"], set()).add(thread)
    assert sorted(by_stream) == list(range(1, 9))


def test_streams_keep_hips_order(build):
    assert run(build("ordering.cpp", "-pthread"), timeout=60).returncode == 0


def test_a_host_function_that_nobody_registered_is_an_invalid_device_function(standin):
    grid = (ctypes.c_uint32 * 3)(1, 1, 1)

    class Dim3(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]

    one = Dim3(*grid)
    error = standin.hipLaunchKernel(ctypes.c_void_p(0x1234), one, one, None, ctypes.c_size_t(0), None)
    assert error == Standin.INVALID_DEVICE_FUNCTION
    assert standin.hip_standin_launch_count() == 0


def test_an_unloaded_library_takes_its_kernels_with_it(build, standin):
    library_path = build("plugin.hip", "-shared", "-fPIC")
    unload = ctypes.CDLL(None).dlclose
    unload.argtypes = [ctypes.c_void_p]
    for value in (1, 2):
        plugin = ctypes.CDLL(str(library_path))
        plugin.plugin_kernel.restype = ctypes.c_void_p
        kernel = plugin.plugin_kernel()
        assert plugin.launch_plugin(value) == Standin.SUCCESS
        attributes = ctypes.create_string_buffer(64)
        assert standin.hipFuncGetAttributes(attributes, ctypes.c_void_p(kernel)) == Standin.SUCCESS
        assert unload(plugin._handle) == 0
        error = standin.hipFuncGetAttributes(attributes, ctypes.c_void_p(kernel))
        assert error == Standin.INVALID_DEVICE_FUNCTION == standin.hipGetLastError()
    assert [launch["args"][1]["bytes"] for launch in standin.launches()] == ["01000000", "02000000"]


def test_one_of_two_libraries_with_the_same_kernel_can_be_unloaded(build, standin):
    """Template instances are weak symbols: with RTLD_GLOBAL the second library registers the first one's kernel."""
    unload = ctypes.CDLL(None).dlclose
    unload.argtypes = [ctypes.c_void_p]
    first = ctypes.CDLL(str(build("plugin.hip", "-shared", "-fPIC")), mode=ctypes.RTLD_GLOBAL)
    second = ctypes.CDLL(str(build("plugin.hip", "-shared", "-fPIC", "-DSECOND")), mode=ctypes.RTLD_GLOBAL)
    first.plugin_kernel.restype = second.plugin_kernel.restype = ctypes.c_void_p
    assert first.plugin_kernel() == second.plugin_kernel()
    assert unload(second._handle) == 0
    assert first.launch_plugin(5) == Standin.SUCCESS
    assert [launch["args"][1]["bytes"] for launch in standin.launches()] == ["05000000"]
    assert unload(first._handle) == 0


# --- Modules ------------------------------------------------------------------------------------------------------


def test_a_module_is_launched_with_pointers_or_with_a_buffer(genco, standin):
    error, module = standin.load(genco)
    assert error == Standin.SUCCESS
    error, function = standin.function(module, FILL)
    assert error == Standin.SUCCESS
    assert standin.function(module, "no_such_kernel")[0] == Standin.NOT_FOUND

    buffer = bytes(range(37))
    pieces = [ctypes.create_string_buffer(buffer[a:b], b - a) for a, b in ((0, 8), (8, 32), (32, 36), (36, 37))]
    pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(piece) for piece in pieces))
    shape = (2, 1, 1, 64, 1, 1, 0)
    assert standin.hipModuleLaunchKernel(function, *shape, None, pointers, None) == Standin.SUCCESS

    content = ctypes.create_string_buffer(buffer, len(buffer))
    size = ctypes.c_size_t(len(buffer))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(content), 2, ctypes.addressof(size), 3)
    assert standin.hipModuleLaunchKernel(function, *shape, None, None, extra) == Standin.SUCCESS

    by_pointers, by_buffer = standin.launches()
    assert [argument["bytes"] for argument in by_pointers["args"]] == [bytes(piece).hex() for piece in pieces]
    assert by_buffer.pop("kernarg") == buffer.hex()
    assert by_buffer == by_pointers | {"sequence": 1}

    assert standin.hipModuleUnload(module) == Standin.SUCCESS
    assert standin.hipModuleLaunchKernel(function, *shape, None, pointers, None) == Standin.INVALID_HANDLE


def test_a_module_for_another_arch_or_from_no_file_is_refused(genco, standin, tmp_path):
    standin.hip_standin_set_arch(b"gfx1100")
    assert standin.load(genco)[0] == Standin.NO_BINARY_FOR_GPU
    assert standin.load(tmp_path / "none")[0] == Standin.FILE_NOT_FOUND
    (tmp_path / "text").write_text("not device code, but long enough to be read as some")
    assert standin.load(tmp_path / "text")[0] == Standin.INVALID_IMAGE


def test_damaged_device_code_is_an_error_and_never_a_crash(genco, prefix, tmp_path):
    whole = genco.read_bytes()
    random_source = random.Random(20261201)
    interesting = [i for i in range(len(whole)) if whole[i : i + 6] in (b"AMDGPU", b"amdhsa", b"hipv4-")]
    for i in range(150):
        damaged = bytearray(whole)
        if i < 50:
            damaged = damaged[: random_source.randrange(1, len(whole))]
        else:
            near = random_source.choice([0, *interesting])
            for _ in range(random_source.randrange(1, 20)):
                damaged[min(near + random_source.randrange(600), len(whole) - 1)] = random_source.randrange(256)
        (tmp_path / f"{i}.co").write_bytes(damaged)

    # In a process of its own, so that a crash is seen as one.
    program = f"""
import ctypes, pathlib, sys
library = ctypes.CDLL({str(prefix / "lib/libamdhip64.so")!r})
for path in sorted(pathlib.Path({str(tmp_path)!r}).glob("*.co")):
    module = ctypes.c_void_p()
    print(library.hipModuleLoad(ctypes.byref(module), bytes(path)))
"""
    result = run(os.sys.executable, "-c", program, timeout=60)
    answers = [int(line) for line in result.stdout.split()]
    assert len(answers) == 150
    assert set(answers) <= {Standin.SUCCESS, Standin.INVALID_IMAGE, Standin.NO_BINARY_FOR_GPU}
    # Cut-off files are all refused: the metadata is not all there, or the bundle is not.
    assert answers.count(Standin.INVALID_IMAGE) >= 50
    assert "device code cannot be read" in result.stderr


# --- Devices ------------------------------------------------------------------------------------------------------


def device_count(standin):
    count = ctypes.c_int(-1)
    return standin.hipGetDeviceCount(ctypes.byref(count)), count.value


def attribute(standin, number, device=0):
    value = ctypes.c_int(-1)
    assert standin.hipDeviceGetAttribute(ctypes.byref(value), number, device) == Standin.SUCCESS
    return value.value


def test_devices_are_what_the_test_says(standin):
    multiprocessor_count, warp_size = 63, 87
    assert device_count(standin) == (Standin.SUCCESS, 1)
    assert attribute(standin, multiprocessor_count) == 104

    standin.hip_standin_set_arch(b"gfx942:sramecc+:xnack-,gfx1100")
    assert device_count(standin) == (Standin.SUCCESS, 2)
    assert [attribute(standin, multiprocessor_count, i) for i in (0, 1)] == [304, 96]
    assert [attribute(standin, warp_size, i) for i in (0, 1)] == [64, 32]
    assert standin.hipSetDevice(2) == Standin.INVALID_DEVICE
    standin.hip_standin_set_compute_units(7)
    assert attribute(standin, multiprocessor_count) == 7

    standin.hip_standin_set_arch(b"none")
    assert device_count(standin) == (Standin.NO_DEVICE, 0)
    assert standin.hipMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1)) == Standin.NO_DEVICE


def test_a_launch_goes_to_the_current_device(genco, standin):
    standin.hip_standin_set_arch(b"gfx1100,gfx90a:sramecc+:xnack-")
    assert standin.hipSetDevice(1) == Standin.SUCCESS
    error, module = standin.load(genco)
    assert error == Standin.SUCCESS
    error, function = standin.function(module, "_Z7nothingv")
    assert error == Standin.SUCCESS
    empty = (ctypes.c_void_p * 1)()
    assert standin.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, empty, None) == Standin.SUCCESS
    assert standin.hipSetDevice(0) == Standin.SUCCESS
    error = standin.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, empty, None)
    assert error == Standin.NO_BINARY_FOR_GPU
    assert [(launch["device"], launch["arch"]) for launch in standin.launches()] == [(1, "gfx90a:sramecc+:xnack-")]


def test_memory_is_counted_and_found_again(standin):
    def free_bytes():
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        assert standin.hipMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == Standin.SUCCESS
        return free.value

    before = free_bytes()
    memory = ctypes.c_void_p()
    assert standin.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(1000)) == Standin.SUCCESS
    assert before - free_bytes() == 1000
    start, range_start_address = ctypes.c_void_p(), 11
    inside = ctypes.c_void_p(memory.value + 999)
    error = standin.hipPointerGetAttribute(ctypes.byref(start), range_start_address, inside)
    assert (error, start.value) == (Standin.SUCCESS, memory.value)
    after = ctypes.c_void_p(memory.value + 1000)
    error = standin.hipPointerGetAttribute(ctypes.byref(start), range_start_address, after)
    assert error == Standin.INVALID_VALUE
    assert standin.hipFree(memory) == Standin.SUCCESS
    assert free_bytes() == before
    assert standin.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(before + 1)) == 2
    assert memory.value is None


# --- The test interface ---------------------------------------------------------------------------------------------


def test_recording_can_be_switched_off_for_benchmarks(build, standin, tmp_path):
    plugin = ctypes.CDLL(str(build("plugin.hip", "-shared", "-fPIC")))
    record = tmp_path / "launches.jsonl"
    assert standin.hip_standin_set_record_file(bytes(record)) == 0
    plugin.launch_plugin(1)
    standin.hip_standin_set_recording(0)
    plugin.launch_plugin(2)
    assert (standin.hip_standin_launch_count(), len(standin.launches())) == (2, 1)
    standin.hip_standin_reset()
    standin.hip_standin_set_recording(1)
    plugin.launch_plugin(3)
    assert [(x["sequence"], x["args"][1]["bytes"]) for x in standin.launches()] == [(0, "03000000")]
    assert [x["args"][1]["bytes"] for x in read_record(record)] == ["01000000", "03000000"]


def test_json_is_cut_off_at_the_capacity(build, standin):
    plugin = ctypes.CDLL(str(build("plugin.hip", "-shared", "-fPIC")))
    plugin.launch_plugin(1)
    buffer = ctypes.create_string_buffer(b"x" * 20, 20)
    size = standin.hip_standin_launch_json(0, buffer, 10)
    assert size > 20
    assert bytes(buffer) == b'{"sequenc\0' + b"x" * 10
    assert standin.hip_standin_launch_json(1, buffer, 10) == 0


def test_a_record_file_that_cannot_be_opened_is_reported(build, standin, tmp_path):
    assert standin.hip_standin_set_record_file(bytes(tmp_path)) == -1
    result = run(build("launches.cpp"), env={"HIP_STANDIN_RECORD": str(tmp_path)})
    assert f"cannot open HIP_STANDIN_RECORD={tmp_path}" in result.stderr


# --- The library itself ---------------------------------------------------------------------------------------------


def test_it_builds_without_warnings_with_gcc(prefix, tmp_path):
    # The prefix's own was built with clang.
    output = tmp_path / "with space" / "libamdhip64.so.7"
    output.parent.mkdir()
    result = run(SOURCES / "build.sh", "--compiler", "g++", "--include", prefix / "include", "--output", output)
    assert result.stderr == ""
    assert exported(output) == exported(prefix / "lib/libamdhip64.so")
    assert [path.name for path in output.parent.iterdir()] == [output.name]


def exported(library):
    symbols = run("nm", "-D", "--defined-only", library).stdout
    return {line.split()[-1] for line in symbols.splitlines()}


def test_it_exports_hip_and_nothing_else(prefix):
    names = exported(prefix / "lib/libamdhip64.so")
    assert {"hipLaunchKernel", "hipGetDevicePropertiesR0600", "hipLaunchHostFunc", "hip_standin_reset"} <= names
    assert [name for name in names if not name.startswith(("hip", "__hip"))] == []
    assert "libamdhip64.so.7" in run("readelf", "-d", prefix / "lib/libamdhip64.so").stdout


def test_it_is_formatted():
    sources = [*SOURCES.glob("*.h"), *SOURCES.glob("*.cpp"), *PROGRAMS.iterdir()]
    assert len(sources) > 20
    run("clang-format-19", "--dry-run", "-Werror", *sources)


# --- Real CK --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def aiter():
    return Path(run(REPOSITORY / "scripts/fetch_ck.sh", timeout=900).stdout.strip()) / "aiter_meta"


def ck_flags(aiter):
    ck = aiter / "3rdparty/composable_kernel"
    return (
        *("-std=c++20", "-fPIC", "-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3", "-DCK_TILE_FMHA_FWD_FAST_EXP2=1"),
        *("-isystem", ck / "include", f"-I{ck}/example/ck_tile/01_fmha"),
    )


@pytest.mark.real_ck
def test_a_kernel_launched_by_ck_tile_is_recorded(build, aiter, tmp_path):
    program = build("ck_tile_kernel.cpp", *ck_flags(aiter))
    record = tmp_path / "launches.jsonl"
    assert run(program, env={"HIP_STANDIN_RECORD": str(record)}).stdout == "0\n"
    (launch,) = read_record(record)
    padding = b"\xee"
    kargs = struct.pack("<QQ", 0x1000, 0x2000) + b"t" + 7 * padding + struct.pack("<di", 0.5, 1000) + 4 * padding
    assert launch["kernel"].startswith("_ZN7ck_tile6kentryILi1E11ScaleKernel")
    assert (launch["grid"], launch["block"], launch["dynamic_shared_bytes"]) == ([4, 1, 1], [256, 1, 1], 512)
    assert [argument["bytes"] for argument in launch["args"]] == [kargs.hex()]

    # With timing CK launches 3 times cold and 10 times warm, and reports a tenth of the time between the events.
    record.unlink()
    timed = run(program, "timed", env={"HIP_STANDIN_RECORD": str(record), "HIP_STANDIN_EVENT_MS": "5"})
    assert (timed.stdout, len(read_record(record))) == ("0.5\n", 13)


@pytest.mark.real_ck
def test_every_hip_function_that_ck_and_aiter_call_is_there(prefix, aiter):
    ck = aiter / "3rdparty/composable_kernel"
    directories = [
        ck / "include/ck_tile",
        ck / "example/ck_tile/01_fmha",
        *(aiter / "csrc" / name for name in ("include", "cpp_itfs", "py_itfs_cu")),
    ]
    called = set()
    for directory in directories:
        for path in directory.rglob("*"):
            if path.suffix in {".h", ".hpp", ".cuh", ".cpp", ".cu", ".py"}:
                called |= set(re.findall(r"\b(hip[A-Z]\w*) *\(", path.read_text(errors="replace")))
    assert {"hipGetDevice", "hipMemcpyAsync", "hipModuleLaunchKernel"} <= called
    # A macro for kernel<<<>>>, and a macro for the name with R0600.
    called -= {"hipLaunchKernelGGL", "hipGetDeviceProperties"}
    assert sorted(called - exported(prefix / "lib/libamdhip64.so")) == []


@pytest.mark.real_ck
@pytest.mark.full  # a blob takes half a minute or more to compile
def test_a_real_forward_blob_is_compiled_called_and_recorded(prefix, aiter, build, tmp_path):
    generated = tmp_path / "generated"
    generated.mkdir()
    run(
        *(os.sys.executable, aiter / "3rdparty/composable_kernel/example/ck_tile/01_fmha/generate.py"),
        *("-d", "fwd", "--receipt", "600", "--targets", "gfx942", "--output_dir", generated),
        *("--filter", "*d128_bf16_batch*_qr_vr_npad_nlogits_bias_nmask_nlse_ndropout_nskip*"),
    )
    (blob,) = sorted(generated.glob("fmha_fwd_d128_bf16_batch*_gfx9.cpp"))[:1]
    library = tmp_path / "blob.so"
    run(prefix / "bin/hipcc", "--offload-arch=gfx90a", "-O3", *ck_flags(aiter), "-shared", blob, "-o", library)
    symbols = run("nm", "-D", "--defined-only", library).stdout.split()
    (symbol,) = [name for name in symbols if name.startswith("_Z9fmha_fwd_")]

    driver = build("call_fwd_blob.cpp", *ck_flags(aiter), "--cuda-host-only")
    record = tmp_path / "launches.jsonl"
    result = run(driver, library, symbol, 1, env={"HIP_STANDIN_RECORD": str(record)})
    assert result.stdout == f", {blob.stem.removesuffix('_gfx9')}\n0\n"
    (launch,) = read_record(record)
    assert launch["kernel"].startswith("_ZN7ck_tile6kentryINS_6gfx9_tELi1ENS_13FmhaFwdKernelI")
    assert (launch["grid"], launch["block"]) == ([16, 8, 2], [256, 1, 1])
    (kargs,) = launch["args"]
    q, k, v, o = struct.unpack_from("<QQQQ", bytes.fromhex(kargs["bytes"]))
    assert (q, k, v, o) == (0x100000, 0x200000, 0x300000, 0x500000)
    assert len(kargs["bytes"]) == 2 * kargs["size"] > 200
