#!/usr/bin/env bash
# Downloads and unpacks the CK and aiter sources that the tests and the quickstart use, and prints where they are.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=work_dir.sh
source "$here/work_dir.sh"

version=0.1.7.post2.dev18
sha256=fe139d74438217c35e87e3b961166bac8db2d381eadccb371da2e63615f05a31

usage() {
    cat <<'EOF'
usage: fetch_ck.sh [WORK_DIR]

Downloads the wheel of amd-aiter (40 MB) into WORK_DIR, unpacks it there once, and prints the path of the unpacked
tree. CK is its aiter_meta/3rdparty/composable_kernel, aiter's sources are its aiter_meta/csrc.
WORK_DIR defaults to ck-post-build-inputs in $XDG_CACHE_HOME or ~/.cache. PYTHON names the Python whose pip is used.
EOF
}

case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
-*)
    usage >&2
    exit 2
    ;;
esac
if (($# > 1)); then
    usage >&2
    exit 2
fi

work_dir=${1:-$(default_work_dir)}
mkdir -p "$work_dir"
work_dir=$(cd "$work_dir" && pwd)
tree=$work_dir/amd-aiter-$version

if [[ ! -d $tree ]]; then
    python=$(find_python "$(dirname "$here")")
    lock_work_dir "$work_dir"
    if [[ ! -d $tree ]]; then
        make_scratch_dir "$work_dir"
        say "downloading amd-aiter $version"
        download_wheel "$python" "$scratch/wheel" "amd-aiter==$version --hash=sha256:$sha256"
        "$python" -m zipfile -e "$scratch"/wheel/*.whl "$scratch/tree"
        [[ -f $scratch/tree/aiter_meta/3rdparty/composable_kernel/example/ck_tile/01_fmha/generate.py ]] ||
            die "amd-aiter $version holds no composable_kernel/example/ck_tile/01_fmha/generate.py"
        mv -T "$scratch/tree" "$tree"
    fi
fi
printf '%s\n' "$tree"
