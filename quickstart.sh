#!/usr/bin/env bash
# From nothing to a first attention call: installs what is missing, builds CK's libmha_fwd.so and libmha_bwd.so as lazy
# libraries, and calls them in every direction. Without an AMD GPU the kernels are compiled for gfx90a, and a stand-in
# HIP library takes the launches. A second run finds everything done.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/set_up.sh
source "$here/scripts/set_up.sh"

usage() {
    cat <<'EOF'
usage: quickstart.sh [WORK_DIR]

WORK_DIR (default: build/quickstart in the checkout) gets a Python environment, generated sources, both libraries under
WORK_DIR/prefix, and compiled kernels under WORK_DIR/cache (CK_JIT_CACHE_DIR, if set). Downloads go to
ck-post-build-inputs in $XDG_CACHE_HOME or ~/.cache.
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

work=${1:-$here/build/quickstart}
mkdir -p "$work"
work=$(cd "$work" && pwd)
log_dir=$work/log
mkdir -p "$log_dir"
cd "$work"

step "install Debian packages" "$here/scripts/install_packages.sh" compiler python
# aiter's generators import packaging and setuptools.
step "install ck-post-build into $(basename "$work")/venv" \
    python_environment "$work/venv" "$here"/{pyproject.toml,ck_post_build,templates,ck_jit_runtime,cmake} -- \
    "$here" packaging setuptools
export PYTHON=$work/venv/bin/python
export PATH=$work/venv/bin:$PATH

aiter='' # its tree
step_answer aiter "fetch CK and aiter" "$here/scripts/fetch_ck.sh"
if arch=$("$here/scripts/gpu_arch.sh" 2>/dev/null); then
    step_answer ROCM_PATH "find ROCm" "$here/scripts/rocm_prefix.sh"
else
    # A ROCm of this machine has no HIP library that runs without a GPU.
    arch=gfx90a
    step_answer ROCM_PATH "no AMD GPU: assemble a compiler and a stand-in" "$here/scripts/rocm_prefix.sh" --standin --assemble
fi
export ROCM_PATH
ck=$aiter/aiter_meta/3rdparty/composable_kernel
fmha=$ck/example/ck_tile/01_fmha

# generated NAME COMMAND...: the command writes sources into the directory NAME, unless the same one has.
generated() {
    local directory=$1
    shift
    [[ ! -f $directory/.generated || $(<"$directory/.generated") != "$*" ]] || return 0
    rm -rf "$directory"
    "$@"
    printf '%s\n' "$*" >"$directory/.generated"
}

filter='*_d128_bf16_*'
generate=(python "$fmha/generate.py" --receipt 600 --targets "$arch")
step "generate forward kernels (d128, bf16)" generated gen_fwd "${generate[@]}" --direction fwd,fwd_splitkv,batch_prefill \
    --filter "$filter,$filter@$filter,$filter" --output_dir gen_fwd
step "generate backward kernels (d128, bf16)" generated gen_bwd "${generate[@]}" --direction bwd \
    --filter "$filter@$filter@$filter" --output_dir gen_bwd

# aiter's C++ functions over CK alone: 3 is forward and split-KV, 1 is backward. They ask which GPUs to build for.
export GPU_ARCHS=$arch
generate_aiter() {
    python "$1/mha_fwd_generate.py" --receipt 3 --output_dir gen_aiter
    python "$1/mha_bwd_generate.py" --receipt 1 --output_dir gen_aiter
}
step "generate aiter's C++ API" generated gen_aiter generate_aiter "$aiter/aiter_meta/csrc/cpp_itfs"

# aiter's own flags, but for those that take plain clang over ten minutes a kernel.
flags="-std=c++20 -O3 --offload-arch=$arch -DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=2 -fgpu-flush-denormals-to-zero"
flags+=" -I'$ck/include' -I'$fmha' -I'$aiter/aiter_meta/csrc/include'"

step "build libmha_fwd.so" ck-post-build build --verbose --lib libmha_fwd.so -o build_fwd \
    --api gen_fwd/fmha_fwd_api.cpp --api gen_fwd/fmha_fwd_splitkv_api.cpp --api gen_fwd/fmha_batch_prefill_api.cpp \
    --blob-dir gen_fwd --host-object gen_aiter/mha_fwd.cpp --flags "$flags -DCK_TILE_FMHA_FWD_FAST_EXP2=1"
step "build libmha_bwd.so" ck-post-build build --verbose --lib libmha_bwd.so -o build_bwd \
    --api gen_bwd/fmha_bwd_api.cpp --blob-dir gen_bwd --host-object gen_aiter/mha_bwd.cpp --flags "$flags"

install_libraries() {
    ck-post-build install --build-dir build_fwd --prefix prefix
    ck-post-build install --build-dir build_bwd --prefix prefix
}
step "install both into $(basename "$work")/prefix" install_libraries

build_example() {
    local source=$here/examples/quickstart runtime name
    if [[ -x quickstart && -z $(find "$source" build_fwd/libmha_fwd.so build_bwd/libmha_bwd.so -newer quickstart) ]]; then
        return
    fi
    runtime=$(python -c 'from ck_post_build.resources import resource_dir; print(resource_dir("ck_jit_runtime"))')
    for name in forward backward main; do
        # In a host-only pass clang names no unit by itself, and the units' symbols clash.
        "$ROCM_PATH/bin/hipcc" -x hip --cuda-host-only -Xclang "-cuid=$name" --offload-arch="$arch" -std=c++20 -O1 -Wall \
            -Wextra -Werror -isystem "$ck/include" -isystem "$fmha" -isystem "$aiter/aiter_meta/csrc/include" \
            -I"$runtime" -c "$source/$name.cpp" -o "$name.o"
    done
    "$ROCM_PATH/bin/hipcc" {forward,backward,main}.o prefix/libmha_fwd.so prefix/libmha_bwd.so \
        -Wl,-rpath,"\$ORIGIN/prefix" -o quickstart
}
step "compile examples/quickstart" build_example

export CK_JIT_CACHE_DIR=${CK_JIT_CACHE_DIR:-$work/cache}
echo
echo "Calls on $arch; each compiles its kernels first, unless $CK_JIT_CACHE_DIR has them:"
started=$SECONDS
./quickstart
echo "(calls: $((SECONDS - started)) s)"
