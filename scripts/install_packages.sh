#!/usr/bin/env bash
# Installs, with apt and by name, the Debian packages that the project needs and that are missing.
set -euo pipefail

# Major versions are part of the names: a newer clang is another package, never a silent upgrade.
# HIP 5.2's libamdhip64-dev brings the headers that triton's HIP 7.1 leaves out (hip_fp16.h, hip_bfloat16.h).
packages_of() {
    case $1 in
    compiler) echo clang-19 clang-tools-19 lld-19 libclang1-19 libclang-rt-19-dev rocm-device-libs libamdhip64-dev ;;
    python) echo python3 python3-venv python3-pip ;;
    dev) echo shellcheck clang-format-19 llvm-19 g++ libc6-dev cmake git ;;
    rust) echo cargo rust-clippy ;;
    browser) echo chromium fonts-dejavu-core ;;
    cross) echo qemu-user libstdc++-12-dev-arm64-cross libc6-dev-arm64-cross ;;
    esac
}

usage() {
    cat <<'EOF'
usage: install_packages.sh [--list] [compiler|python|dev|rust|browser|cross]...

Installs the missing ones of the named groups of Debian packages (default: compiler).
  compiler   a HIP compiler for machines without ROCm: clang 19, lld, device libraries
  python     Python 3 with venv and pip
  dev        what the checks of this repository use besides
  rust       Rust, which they use too, for machines without a rustup
  browser    Chromium, which the tests of the report page use
  cross      aarch64 programs on other machines, for the test of the lazy stubs
  --list     print the missing packages, one a line, and install nothing
EOF
}

list_only=
groups=()
while (($#)); do
    case $1 in
    --list) list_only=1 ;;
    compiler | python | dev | rust | browser | cross) groups+=("$1") ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done
((${#groups[@]})) || groups=(compiler)

wanted=()
for group in "${groups[@]}"; do
    read -ra members < <(packages_of "$group")
    wanted+=("${members[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install_packages.sh: this system has no apt; install the equivalents of: ${wanted[*]}" >&2
    exit 1
fi

missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    # A package of several architectures has several statuses, written without anything between them.
    [[ $status == installed* ]] || missing+=("$package")
done

if [[ -n $list_only ]]; then
    ((${#missing[@]} == 0)) || printf '%s\n' "${missing[@]}"
    exit 0
fi
((${#missing[@]})) || exit 0

as_root=()
if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "install_packages.sh: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

export DEBIAN_FRONTEND=noninteractive
install=("${as_root[@]}" apt-get install --yes --no-install-recommends -- "${missing[@]}")
echo "install_packages.sh: installing ${missing[*]}" >&2
# The lists may be there and fresh, or missing as in a bare container: ask for them only when they are needed.
if ! "${install[@]}" >&2; then
    "${as_root[@]}" apt-get update >&2
    "${install[@]}" >&2
fi
