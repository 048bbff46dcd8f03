"""The scripts that put the tool chain together: atomic, idempotent, and hipcc's arguments word by word.

Downloads and package managers are played by small programs; test_hip_standin.py uses the real ones.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPTS = REPOSITORY / "scripts"
GENERATE_PY = "aiter_meta/3rdparty/composable_kernel/example/ck_tile/01_fmha/generate.py"


def run(*command, env=None, timeout=60, cwd=None):
    return subprocess.run(
        [str(word) for word in command],
        env=os.environ | {key: str(value) for key, value in (env or {}).items()},
        text=True,
        capture_output=True,
        timeout=timeout,
        cwd=cwd,
    )


def answer(*command, **options):
    result = run(*command, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def leftovers(work_dir):
    return [path.name for path in work_dir.iterdir() if path.name.startswith(".partial-")]


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)


def test_all_scripts_are_shellcheck_clean():
    scripts = [*SCRIPTS.glob("*.sh"), *(REPOSITORY / "tests/hip_standin").glob("*.sh")]
    assert len(scripts) >= 6
    result = run("shellcheck", *scripts)
    assert result.returncode == 0, result.stdout


# --- fetch_ck.sh ----------------------------------------------------------------------------------------------------


@pytest.fixture
def python(tmp_path):
    """A Python whose pip hands out a small wheel, slowly when told to, and writes down what it was asked for."""
    wheel = tmp_path / "made" / "amd_aiter-0.1.7.post2.dev18-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(GENERATE_PY, "# the generator\n")
        for i in range(50):
            archive.writestr(f"aiter_meta/csrc/{i}.cpp", f"// {i}\n")
    return write_program(
        tmp_path / "fake bin" / "python",
        f"""#!{sys.executable}
import os, pathlib, shutil, sys, time

arguments = sys.argv[1:]
log = pathlib.Path({str(tmp_path / "pip.log")!r})
if arguments[:3] == ["-m", "pip", "--version"]:
    sys.exit()
if arguments[:3] == ["-m", "pip", "download"]:
    requirement = pathlib.Path(arguments[arguments.index("--requirement") + 1]).read_text().strip()
    with log.open("a") as file:
        file.write(" ".join(a for a in arguments if a.startswith("--")) + " | " + requirement + "\\n")
    destination = pathlib.Path(arguments[arguments.index("--dest") + 1])
    (destination / "half").write_text("half a download")
    time.sleep(float(os.environ.get("SLOW_PIP", "0")))
    (destination / "half").unlink()
    if "PIP_FAILS" in os.environ:
        sys.exit("no such thing")
    shutil.copy({str(wheel)!r}, destination)
    sys.exit()
if arguments[:2] == ["-m", "zipfile"] and "SLOW_UNPACKING" in os.environ:
    tree = pathlib.Path(arguments[-1], "aiter_meta")
    tree.mkdir(parents=True)
    log.with_name("unpacking").touch()
    time.sleep(60)
os.execv({sys.executable!r}, [{sys.executable!r}, *arguments])
""",
    )


def fetch(work_dir, python, **env):
    return run(SCRIPTS / "fetch_ck.sh", work_dir, env={"PYTHON": python} | env)


def downloads(tmp_path):
    log = tmp_path / "pip.log"
    return log.read_text().splitlines() if log.exists() else []


def test_fetch_downloads_once_by_name_and_hash(tmp_path, python):
    work_dir = tmp_path / "work dir"
    first = fetch(work_dir, python)
    second = fetch(work_dir, python)
    tree = work_dir / "amd-aiter-0.1.7.post2.dev18"
    assert (first.returncode, first.stdout) == (0, f"{tree}\n"), first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, f"{tree}\n", "")
    assert (tree / GENERATE_PY).read_text() == "# the generator\n"
    (download,) = downloads(tmp_path)
    options, requirement = download.split(" | ")
    assert {"--no-deps", "--only-binary=:all:", "--require-hashes"} <= set(options.split())
    name, sha256 = requirement.split(" --hash=sha256:")
    assert name == "amd-aiter==0.1.7.post2.dev18"
    assert len(sha256) == 64
    assert sorted(path.name for path in work_dir.iterdir()) == [".lock", tree.name]


def test_fetch_uses_the_cache_directory_of_the_user(tmp_path, python):
    env = {"PYTHON": python, "XDG_CACHE_HOME": tmp_path / "cache", "HOME": tmp_path / "home"}
    inside = "ck-post-build-inputs/amd-aiter-0.1.7.post2.dev18"
    assert answer(SCRIPTS / "fetch_ck.sh", env=env) == str(tmp_path / "cache" / inside)
    assert answer(SCRIPTS / "fetch_ck.sh", env=env | {"XDG_CACHE_HOME": ""}) == str(tmp_path / "home/.cache" / inside)


@pytest.mark.parametrize("stage", ["download", "unpacking"])
def test_a_killed_fetch_leaves_nothing_half_done(tmp_path, python, stage):
    work_dir = tmp_path / "work"
    slow = {"SLOW_PIP": "60"} if stage == "download" else {"SLOW_UNPACKING": "1"}
    process = subprocess.Popen(
        [SCRIPTS / "fetch_ck.sh", work_dir],
        env=os.environ | {"PYTHON": str(python)} | slow,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if stage == "download":
        wait_until(lambda: list(tmp_path.glob("work/.partial-*/wheel/half")))
    else:
        wait_until((tmp_path / "unpacking").exists)
    kill_group(process)
    assert process.stdout.read() == b""
    assert not (work_dir / "amd-aiter-0.1.7.post2.dev18").exists()
    assert len(leftovers(work_dir)) == 1  # SIGKILL leaves no chance to clean up

    again = fetch(work_dir, python)
    assert again.returncode == 0, again.stderr
    assert (Path(again.stdout.strip()) / GENERATE_PY).exists()
    assert leftovers(work_dir) == []


def test_a_second_fetch_waits_for_the_first_and_downloads_nothing(tmp_path, python):
    work_dir = tmp_path / "work"
    processes = [
        subprocess.Popen(
            [SCRIPTS / "fetch_ck.sh", work_dir],
            env=os.environ | {"PYTHON": str(python), "SLOW_PIP": "0.5"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(4)
    ]
    answers = {process.communicate(timeout=30)[0] for process in processes}
    assert answers == {f"{work_dir}/amd-aiter-0.1.7.post2.dev18\n".encode()}
    assert [process.returncode for process in processes] == [0] * 4
    assert len(downloads(tmp_path)) == 1


def test_a_failed_download_is_one_message_and_leaves_nothing(tmp_path, python):
    result = fetch(tmp_path / "work", python, PIP_FAILS="1")
    assert (result.returncode, result.stdout) == (1, "")
    assert "fetch_ck.sh: could not download amd-aiter==0.1.7.post2.dev18" in result.stderr
    assert [path.name for path in (tmp_path / "work").iterdir()] == [".lock"]


def test_a_wheel_without_ck_is_refused(tmp_path, python):
    with zipfile.ZipFile(tmp_path / "made" / "amd_aiter-0.1.7.post2.dev18-py3-none-any.whl", "w") as archive:
        archive.writestr("aiter/__init__.py", "")
    result = fetch(tmp_path / "work", python)
    assert result.returncode == 1
    assert "holds no composable_kernel" in result.stderr
    assert [path.name for path in (tmp_path / "work").iterdir()] == [".lock"]


def test_wrong_usage_is_status_2(tmp_path):
    for command in (
        [SCRIPTS / "fetch_ck.sh", "--no-such"],
        [SCRIPTS / "fetch_ck.sh", tmp_path, tmp_path],
        [SCRIPTS / "rocm_prefix.sh", "--hip-library"],
        [SCRIPTS / "install_packages.sh", "no-such-group"],
        [REPOSITORY / "tests/hip_standin/build.sh", "--output", tmp_path / "x"],
    ):
        result = run(*command)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("usage: ")


# --- install_packages.sh --------------------------------------------------------------------------------------------


@pytest.fixture
def debian(tmp_path):
    """A PATH with a dpkg-query that knows some packages and an apt-get that writes down what it was asked for."""
    bin_dir = tmp_path / "bin"
    installed = "clang-19 clang-tools-19 lld-19 libclang-rt-19-dev libamdhip64-dev python3"
    write_program(
        bin_dir / "dpkg-query",
        f'#!/bin/sh\nfor p in {installed}; do [ "$p" != "$3" ] || {{ printf installed; exit; }}; done\n'
        "case $3 in shellcheck) printf config-files; exit;; esac\nexit 1\n",
    )
    write_program(
        bin_dir / "apt-get",
        f'#!/bin/sh\necho "$@" >>"{tmp_path}/apt.log"\n'
        f'[ "$1" = update ] && touch "{tmp_path}/updated"\n'
        f'[ "$1" != install ] || [ -e "{tmp_path}/updated" ] || [ -z "$NEEDS_UPDATE" ]\n',
    )
    write_program(bin_dir / "id", "#!/bin/sh\necho 0\n")
    return {"PATH": f"{bin_dir}:{os.environ['PATH']}"}


def test_only_missing_packages_are_installed(tmp_path, debian):
    assert run(SCRIPTS / "install_packages.sh", env=debian).returncode == 0
    log = (tmp_path / "apt.log").read_text()
    assert log == "install --yes --no-install-recommends -- libclang1-19 rocm-device-libs\n"


def test_missing_packages_are_listed_by_group(tmp_path, debian):
    listed = answer(SCRIPTS / "install_packages.sh", "--list", "python", "dev", env=debian).split()
    # shellcheck was removed and left its configuration: that is not installed.
    assert listed == [
        "python3-venv",
        "python3-pip",
        *["shellcheck", "clang-format-19", "llvm-19", "g++", "libc6-dev", "cmake", "git"],
    ]
    assert not (tmp_path / "apt.log").exists()


def test_package_lists_are_fetched_only_when_apt_needs_them(tmp_path, debian):
    assert run(SCRIPTS / "install_packages.sh", env=debian | {"NEEDS_UPDATE": "1"}).returncode == 0
    commands = [line.split()[0] for line in (tmp_path / "apt.log").read_text().splitlines()]
    assert commands == ["install", "update", "install"]


def test_without_root_and_sudo_the_command_to_run_is_named(tmp_path, debian):
    write_program(tmp_path / "bin" / "id", "#!/bin/sh\necho 1000\n")
    for tool in ("bash", "env", "cat"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    result = run(SCRIPTS / "install_packages.sh", env={"PATH": tmp_path / "bin"})
    assert result.returncode == 1
    assert "as root run: apt-get install libclang1-19 rocm-device-libs" in result.stderr


# --- gpu_arch.sh ----------------------------------------------------------------------------------------------------


def test_the_gpu_is_read_from_the_kernel_drivers_table(tmp_path):
    for node, version in enumerate([0, 90010, 90402]):
        (tmp_path / str(node)).mkdir()
        (tmp_path / str(node) / "properties").write_text(f"cpu_cores_count 0\ngfx_target_version {version}\nx 1\n")
    assert answer(SCRIPTS / "gpu_arch.sh", env={"KFD_TOPOLOGY": tmp_path}) == "gfx90a"
    shutil.rmtree(tmp_path / "1")
    assert answer(SCRIPTS / "gpu_arch.sh", env={"KFD_TOPOLOGY": tmp_path}) == "gfx942"
    shutil.rmtree(tmp_path / "2")
    result = run(SCRIPTS / "gpu_arch.sh", env={"KFD_TOPOLOGY": tmp_path})
    assert (result.returncode, result.stdout) == (1, "")
    assert "no AMD GPU" in result.stderr


# --- rocm_prefix.sh -------------------------------------------------------------------------------------------------


def test_a_rocm_on_the_machine_is_used_as_it_is(tmp_path):
    rocm, home = tmp_path / "a rocm", tmp_path / "home"
    for root in (rocm, home):
        write_program(root / "bin/hipcc", "#!/bin/sh\n")
    work_dir = tmp_path / "work"
    env = {"ROCM_PATH": rocm, "ROCM_HOME": home}
    for options in ([], ["--standin"]):
        assert answer(SCRIPTS / "rocm_prefix.sh", *options, work_dir, env=env) == str(rocm)
    result = run(SCRIPTS / "rocm_prefix.sh", work_dir, env=env | {"ROCM_PATH": tmp_path / "none"})
    assert result.stdout == f"{home}\n"
    assert f"no bin/hipcc in {tmp_path}/none: looking further" in result.stderr
    assert not work_dir.exists()


@pytest.fixture(scope="session")
def hip_headers():
    prefix = answer(SCRIPTS / "rocm_prefix.sh", "--assemble", timeout=900)
    (headers,) = Path(prefix).parent.glob("hip-headers-of-triton-*")
    return headers


@pytest.fixture
def work_dir(hip_headers, tmp_path):
    """A work directory with the headers, so that no test downloads them again, and nothing else."""
    work_dir = tmp_path / "work dir"
    shutil.copytree(hip_headers, work_dir / hip_headers.name)
    return work_dir


def prefixes(work_dir):
    return list(work_dir.glob("rocm-*"))


def test_a_prefix_is_assembled_once(work_dir):
    first = answer(SCRIPTS / "rocm_prefix.sh", "--assemble", work_dir)
    hipcc = Path(first) / "bin/hipcc"
    built = hipcc.stat().st_mtime_ns
    assert answer(SCRIPTS / "rocm_prefix.sh", "--assemble", work_dir) == first
    assert hipcc.stat().st_mtime_ns == built
    assert prefixes(work_dir) == [Path(first)]
    for name in (
        *("include/hip/hip_runtime.h", "amdgcn/bitcode/ockl.bc", "amdgcn/bitcode/oclc_isa_version_942.bc"),
        *("llvm/bin/clang++", "llvm/bin/clang-offload-bundler", "llvm/bin/ld.lld", "llvm/lib/libclang.so"),
        *("llvm/lib/clang/19/include/__clang_hip_runtime_wrapper.h", "bin/amdclang++", ".info/version"),
    ):
        assert (Path(first) / name).exists(), name
    # Another HIP library is another prefix; the first stays for those who use it.
    library = work_dir / "libmine.so"
    library.touch()
    second = answer(SCRIPTS / "rocm_prefix.sh", "--assemble", "--hip-library", library, work_dir)
    assert (Path(second) / "lib/libamdhip64.so").resolve() == library
    assert sorted(prefixes(work_dir)) == sorted([Path(first), Path(second)])


def test_an_assembly_killed_at_any_moment_leaves_no_half_prefix(work_dir):
    command = [SCRIPTS / "rocm_prefix.sh", "--assemble", work_dir]
    moments = 0
    for i in range(12):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(0.03 + 0.02 * i)
        if process.poll() is None:
            moments += 1
            kill_group(process)
        for prefix in prefixes(work_dir):
            assert (prefix / "amdgcn/bitcode/oclc_isa_version_942.bc").exists()
            shutil.rmtree(prefix)
    assert moments > 3
    prefix = answer(*command)
    assert prefixes(work_dir) == [Path(prefix)]
    assert leftovers(work_dir) == []


# --- bin/hipcc ------------------------------------------------------------------------------------------------------


@pytest.fixture
def hipcc(tmp_path):
    """The words that hipcc gives to clang, for the words given to it."""
    prefix = tmp_path / "a prefix"
    write_program(prefix / "bin/hipcc", (SCRIPTS / "hipcc_in_prefix.sh").read_text())
    (prefix / "bin/.hipVersion").write_text("HIP_VERSION_MAJOR=7\nHIP_VERSION_MINOR=1\nHIP_VERSION_PATCH=2-ab\n")
    (prefix / "lib").mkdir()
    (prefix / "lib/libamdhip64.so").touch()
    write_program(prefix / "llvm/bin/clang++", "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\n")

    def hipcc(*words, **env):
        return answer(prefix / "bin/hipcc", *words, env=env).splitlines()

    hipcc.prefix = prefix
    hipcc.always = [
        *(f"--rocm-path={prefix}", f"--rocm-device-lib-path={prefix}/amdgcn/bitcode", "-D__HIP_PLATFORM_AMD__=1"),
        *("-isystem", f"{prefix}/include"),
    ]
    hipcc.link = ["--hip-link", "--rtlib=compiler-rt", "-unwindlib=libgcc", f"-L{prefix}/lib"]
    hipcc.rpath = ["-Xlinker", "--enable-new-dtags", "-Xlinker", "-rpath", "-Xlinker", f"{prefix}/lib"]
    return hipcc


def test_sources_are_compiled_as_hip_and_objects_are_not(hipcc):
    assert hipcc("-c", "a b.cpp", "-o", "a.o") == [*hipcc.always, "-O3", "-c", "-x", "hip", "a b.cpp", "-o", "a.o"]
    assert hipcc("-O1", "a.cu", "b.hip", "c.o", "d.cpp", "-o", "e") == [
        *(*hipcc.always, *hipcc.link, "-O1"),
        *("-x", "hip", "a.cu", "b.hip", "-x", "none", "c.o", "-x", "hip", "d.cpp", "-o", "e"),
        *hipcc.rpath,
    ]


def test_a_language_that_the_caller_chose_stays(hipcc):
    words = ["-c", "-x", "c++", "a.cpp", "-x", "none", "b.cpp"]
    assert hipcc(*words, "-O2")[len(hipcc.always) :] == [*words[:-1], "-x", "hip", "b.cpp", "-O2"]
    assert hipcc("-c", "-xc++", "a.cpp", "-O2")[len(hipcc.always) :] == ["-c", "-xc++", "a.cpp", "-O2"]


def test_values_of_options_are_not_taken_for_sources(hipcc):
    words = ["-c", "-include", "force.cpp", "-MF", "dep.hip", "-MT", "a.cu", "-Xclang", "x.cpp", "-O0"]
    assert hipcc(*words)[len(hipcc.always) :] == words


def test_linking_can_leave_out_the_run_path(hipcc):
    words = ["-O2", "-shared", "-fno-rtlib-add-rpath", "a.o"]
    assert hipcc(*words) == [*hipcc.always, *hipcc.link, *words]


@pytest.mark.parametrize("option", ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"])
def test_nothing_is_linked_when_the_compiler_stops_earlier(hipcc, option):
    assert hipcc(option, "-O2", "a.cpp") == [*hipcc.always, option, "-O2", "-x", "hip", "a.cpp"]


def test_strange_words_arrive_as_they_are(hipcc):
    words = ["-c", "-O2", '-DX="a b"', "-DY=$(touch pwned)", "-DZ=*", "@response file", "--offload-arch=gfx90a,gfx942"]
    assert hipcc(*words) == [*hipcc.always, *words]


def test_genco_is_device_code_alone(hipcc):
    assert hipcc("--genco", "-O2", "a.hip", "-o", "a.co") == [
        *(*hipcc.always, "--cuda-device-only", "-O2", "-x", "hip", "a.hip", "-o", "a.co")
    ]


def test_questions_without_an_input_are_clangs_alone(hipcc):
    assert hipcc("-print-resource-dir") == [*hipcc.always, "-print-resource-dir"]


def test_the_environment_appends_words_without_a_shell(hipcc):
    env = {"HIPCC_COMPILE_FLAGS_APPEND": "-g  -DX=$(id)", "HIPCC_LINK_FLAGS_APPEND": "-s"}
    assert hipcc("-c", "-O2", "a.o", **env) == [*hipcc.always, "-c", "-O2", "a.o", "-g", "-DX=$(id)"]
    assert hipcc("-O2", "a.o", **env)[-3:] == ["-g", "-DX=$(id)", "-s"]


def test_versions_are_printed_as_rocms_hipcc_does(hipcc, hip_headers):
    assert hipcc("--version") == ["HIP version: 7.1.2-ab", "--version"]
    assert hipcc("--short-version") == ["7.1.2-ab"]
    real = answer(SCRIPTS / "rocm_prefix.sh", "--assemble")
    lines = answer(Path(real) / "bin/hipcc", "--version").splitlines()
    assert lines[0] == "HIP version: 7.1.25424-4179531dcd"
    assert "clang version 19." in lines[1]


def test_a_symbolic_link_to_hipcc_finds_its_prefix(hipcc, tmp_path):
    (tmp_path / "hipcc").symlink_to(hipcc.prefix / "bin/hipcc")
    assert answer(tmp_path / "hipcc", "-c", "-O2", "a.o").splitlines()[: len(hipcc.always)] == hipcc.always


def test_a_prefix_without_a_hip_library_says_so_when_it_shall_link(hipcc):
    (hipcc.prefix / "lib/libamdhip64.so").unlink()
    result = run(hipcc.prefix / "bin/hipcc", "a.o")
    assert result.returncode == 1
    assert "rocm_prefix.sh --standin or --hip-library FILE" in result.stderr
    assert run(hipcc.prefix / "bin/hipcc", "-c", "a.cpp").returncode == 0


def test_real_compilation_in_steps_with_a_response_file_and_spaces(hip_headers, tmp_path):
    """The prefix's HIP library wins over Debian's, at compile, link and run time."""
    hipcc = Path(answer(SCRIPTS / "rocm_prefix.sh", "--assemble", "--standin", timeout=300)) / "bin/hipcc"
    directory = tmp_path / "with space"
    directory.mkdir()
    source = directory / "two archs.cpp"
    source.write_text(
        "#include <hip/hip_runtime.h>\n#include <cstdio>\n"
        "__global__ void kernel(float *x, float y) { *x = sinf(y); }\n"
        "int main() { hipDeviceProp_t p; (void)hipGetDeviceProperties(&p, 0); kernel<<<1, 1>>>(nullptr, 1);\n"
        'std::printf("%s %d %s\\n", p.gcnArchName, HIP_VERSION_MAJOR, hipGetErrorName(hipGetLastError())); }\n'
    )
    (directory / "flags.rsp").write_text("--offload-arch=gfx90a,gfx942 -O1\n")
    result = run(hipcc, "-Werror", "@flags.rsp", "-c", source.name, "-o", "two archs.o", cwd=directory)
    assert (result.returncode, result.stderr) == (0, "")
    assert run(hipcc, "-Werror", "two archs.o", "-o", "program", cwd=directory).stderr == ""
    for arch in ("gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack-"):
        assert answer(directory / "program", env={"HIP_STANDIN_ARCH": arch}) == f"{arch} 7 hipSuccess"
    host_only = run(hipcc, "--cuda-host-only", "-fsyntax-only", source.name, cwd=directory)
    assert (host_only.returncode, host_only.stderr) == (0, "")
