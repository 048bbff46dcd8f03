#!/usr/bin/env bash
# Prints the path of a ROCm: the machine's own, or a small stand-in assembled from Debian's clang and HIP 7.1's headers.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=work_dir.sh
source "$here/work_dir.sh"

repository=$(dirname "$here")
clang_version=19
bitcode=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode
triton_version=3.9.0
triton_sha256=1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e
# For any Python: only the headers in this wheel are used, and those of one fixed file.
triton_wheel=(--python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64)

usage() {
    cat <<'EOF'
usage: rocm_prefix.sh [--standin | --hip-library FILE] [--assemble] [WORK_DIR]

Prints the path of a directory laid out like /opt/rocm: bin/hipcc, include/hip, lib, llvm/bin, amdgcn/bitcode.
A ROCm in $ROCM_PATH, $ROCM_HOME or /opt/rocm is printed as it is. Without one, or with --assemble, a prefix is assembled
once in WORK_DIR, from Debian's clang and the HIP 7.1 headers of the triton wheel (a download of 286 MB).

  --standin           the assembled prefix gets the libamdhip64.so of tests/hip_standin, which needs no GPU
  --hip-library FILE  the assembled prefix gets a link to FILE as its libamdhip64.so
                      (with neither, the prefix compiles and does not link)
  --assemble          do not look for a ROCm on this machine

WORK_DIR defaults to ck-post-build-inputs in $XDG_CACHE_HOME or ~/.cache. Missing Debian packages are installed with
install_packages.sh.
EOF
}

hip_library=
assemble=
work_dir=
while (($#)); do
    case $1 in
    --standin) hip_library=standin ;;
    --hip-library)
        (($# > 1)) || {
            usage >&2
            exit 2
        }
        shift
        hip_library=$(readlink -e -- "$1") || die "--hip-library: no such file: $1"
        ;;
    --assemble) assemble=1 ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        usage >&2
        exit 2
        ;;
    *)
        [[ -z $work_dir ]] || {
            usage >&2
            exit 2
        }
        work_dir=$1
        ;;
    esac
    shift
done

if [[ -z $assemble ]]; then
    for candidate in "${ROCM_PATH:-}" "${ROCM_HOME:-}" /opt/rocm; do
        if [[ -n $candidate && -x $candidate/bin/hipcc ]]; then
            (cd "$candidate" && pwd)
            exit 0
        fi
        [[ -z $candidate || $candidate == /opt/rocm ]] || say "no bin/hipcc in $candidate: looking further"
    done
fi

work_dir=${work_dir:-$(default_work_dir)}
mkdir -p "$work_dir"
work_dir=$(cd "$work_dir" && pwd)

"$here/install_packages.sh" compiler
llvm=$(dirname "$(dirname "$(readlink -e "$(command -v "clang++-$clang_version")")")")

# HIP's headers, kept apart from the prefixes that use them: they cost the download.
hip_headers=$work_dir/hip-headers-of-triton-$triton_version
if [[ ! -d $hip_headers ]]; then
    python=$(find_python "$repository")
    lock_work_dir "$work_dir"
    if [[ ! -d $hip_headers ]]; then
        make_scratch_dir "$work_dir"
        say "downloading triton $triton_version for its HIP headers"
        download_wheel "$python" "$scratch/wheel" "triton==$triton_version --hash=sha256:$triton_sha256" \
            "${triton_wheel[@]}"
        "$python" - "$scratch"/wheel/*.whl "$scratch/tree" <<'EOF'
import pathlib
import sys
import zipfile

wheel, destination = sys.argv[1:]
inside = "triton/backends/amd/include/"
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        relative = name.removeprefix(inside)
        if relative.split("/")[0] in ("hip", "hsa") and name != relative and not name.endswith("/"):
            target = pathlib.Path(destination, relative)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
EOF
        [[ -f $scratch/tree/hip/hip_version.h ]] || die "triton $triton_version holds no HIP headers"
        mv -T "$scratch/tree" "$hip_headers"
        rm -rf "$scratch"
    fi
    unlock_work_dir
fi

# The prefix is named after all that goes into it, so a changed script or stand-in makes a new one and programs that
# use the old one keep it.
fingerprint() {
    printf '%s\n' "$hip_headers" "$llvm" "$hip_library"
    "$llvm/bin/clang" --version
    cat "$here/rocm_prefix.sh" "$here/hipcc_in_prefix.sh" "$here/hipconfig_in_prefix.sh"
    [[ $hip_library != standin ]] || find "$repository/tests/hip_standin" -maxdepth 1 -type f -print0 | sort -z | xargs -0 cat
}
prefix=$work_dir/rocm-$(fingerprint | sha256sum | cut -c -16)
if [[ -d $prefix ]]; then
    printf '%s\n' "$prefix"
    exit 0
fi

header_version() {
    sed -n "s/^#define HIP_VERSION_$1 *\"\{0,1\}\([0-9a-f]*\)\"\{0,1\}\$/\1/p" "$hip_headers/hip/hip_version.h"
}

lock_work_dir "$work_dir"
if [[ ! -d $prefix ]]; then
    make_scratch_dir "$work_dir"
    new=$scratch/prefix
    mkdir -p "$new/bin" "$new/lib/llvm/bin" "$new/lib/llvm/lib/clang" "$new/amdgcn/bitcode" "$new/.info"
    cp -r "$hip_headers" "$new/include"
    install -m 755 "$here/hipcc_in_prefix.sh" "$new/bin/hipcc"
    install -m 755 "$here/hipconfig_in_prefix.sh" "$new/bin/hipconfig"

    # Where clang and CMake look for the version of a ROCm.
    patch=$(header_version PATCH)-$(header_version GITHASH)
    printf 'HIP_VERSION_MAJOR=%s\nHIP_VERSION_MINOR=%s\nHIP_VERSION_PATCH=%s\n' \
        "$(header_version MAJOR)" "$(header_version MINOR)" "$patch" >"$new/bin/.hipVersion"
    printf '%s.%s.0\n' "$(header_version MAJOR)" "$(header_version MINOR)" >"$new/.info/version"

    ln -s lib/llvm "$new/llvm"
    for tool in clang clang++ clang-cpp clang-offload-bundler clang-scan-deps ld.lld lld llvm-ar llvm-mc llvm-nm \
        llvm-objcopy llvm-objdump llvm-readelf llvm-readobj llvm-strip; do
        [[ ! -e $llvm/bin/$tool ]] || ln -s "$llvm/bin/$tool" "$new/llvm/bin/$tool"
    done
    ln -s clang "$new/llvm/bin/amdclang"
    ln -s clang++ "$new/llvm/bin/amdclang++"
    ln -s ../llvm/bin/clang-offload-bundler "$new/bin/clang-offload-bundler"
    ln -s ../llvm/bin/amdclang ../llvm/bin/amdclang++ "$new/bin/"
    ln -s "$llvm/lib/clang/$clang_version" "$new/llvm/lib/clang/$clang_version"
    libclang=$(find "$llvm/lib" /usr/lib/x86_64-linux-gnu -maxdepth 1 -name "libclang-$clang_version.so.*" | sort | head -n 1)
    [[ -n $libclang ]] || die "libclang1-$clang_version is installed without libclang-$clang_version.so"
    ln -s "$libclang" "$new/llvm/lib/libclang.so"

    ln -s "$bitcode"/*.bc "$new/amdgcn/bitcode/"
    if [[ ! -e $bitcode/oclc_isa_version_942.bc ]]; then
        # These device libraries are older than gfx942. Its file holds one constant, as the ones beside it do:
        # 1000 * major + 100 * minor + stepping.
        printf '%s\n' 'target triple = "amdgcn-amd-amdhsa"' \
            '@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 9402, align 4' |
            "$llvm/bin/clang" -x ir -target amdgcn-amd-amdhsa -nogpulib -Xclang -disable-llvm-passes \
                -emit-llvm -c -o "$scratch/isa.bc" -
        mv "$scratch/isa.bc" "$new/amdgcn/bitcode/oclc_isa_version_942.bc"
    fi

    case $hip_library in
    '') ;;
    standin)
        "$repository/tests/hip_standin/build.sh" --compiler "$llvm/bin/clang++" --include "$new/include" \
            --output "$new/lib/libamdhip64.so.7" >&2
        ln -s libamdhip64.so.7 "$new/lib/libamdhip64.so"
        install -m 644 "$repository/tests/hip_standin/hip_standin.h" "$new/include/hip_standin.h"
        ;;
    *) ln -s "$hip_library" "$new/lib/libamdhip64.so" ;;
    esac
    mv -T "$new" "$prefix"
fi
printf '%s\n' "$prefix"
