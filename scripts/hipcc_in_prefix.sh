#!/usr/bin/env bash
# bin/hipcc of the prefix that rocm_prefix.sh assembles: what builds rely on in ROCm's hipcc, on top of a plain clang.
#
# Not taken over from ROCm's: asking the machine for its GPU when no --offload-arch is given (clang's default holds),
# and -amdgpu-early-inline-all / -amdgpu-function-calls=false, which take clang 19 over ten minutes a CK kernel.
set -euo pipefail

prefix=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
clang=$prefix/llvm/bin/clang++

# Reads bin/.hipVersion, the file from which clang itself takes the HIP version.
hip_version() {
    local key value major='' minor='' patch=''
    while IFS='=' read -r key value; do
        case $key in
        HIP_VERSION_MAJOR) major=$value ;;
        HIP_VERSION_MINOR) minor=$value ;;
        HIP_VERSION_PATCH) patch=$value ;;
        esac
    done <"$prefix/bin/.hipVersion"
    printf '%s\n' "$major.$minor.$patch"
}

case ${1:-} in
--version)
    printf 'HIP version: %s\n' "$(hip_version)"
    exec "$clang" --version
    ;;
--short-version)
    hip_version
    exit
    ;;
esac

arguments=()    # the caller's, with "-x hip" around the sources that need it
inputs=0        # sources, objects, libraries, response files
links=1         # until an option says that the compiler stops earlier
optimises=      # set by any -O
adds_rpath=1    # as ROCm's hipcc does
language_set=   # set while the caller's own -x is in force
hip_in_force=   # set while an -x hip that was added here is in force
value_of_option= # the previous word was an option that takes this one

for argument in "$@"; do
    if [[ -n $value_of_option ]]; then
        if [[ $value_of_option == -x ]]; then
            language_set=1
            hip_in_force=
            [[ $argument != none ]] || language_set=
        fi
        value_of_option=
        arguments+=("$argument")
        continue
    fi
    case $argument in
    -c | -S | -E | -M | -MM | -fsyntax-only | --precompile | --analyze | -emit-ast) links= ;;
    --genco)
        # hipcc's own: device code alone, as a bundle.
        links=
        arguments+=(--cuda-device-only)
        continue
        ;;
    -O*) optimises=1 ;;
    -fno-rtlib-add-rpath) adds_rpath= ;;
    -x | -o | -I | -D | -U | -L | -l | -B | -F | -T | -u | -z | -e | -h | -A | -G | \
        -MF | -MT | -MQ | -MJ | -include | -include-pch | -imacros | -isystem | -iquote | -idirafter | -iprefix | \
        -iwithprefix | -iwithprefixbefore | -isystem-after | -isysroot | --sysroot | -Xclang | -Xlinker | -Xpreprocessor | \
        -Xassembler | -Xarch_host | -Xarch_device | -Xopenmp-target | -Xoffload-linker | -mllvm | -target | --param | \
        -rpath | -resource-dir | -working-directory | -dumpdir | -ivfsoverlay)
        value_of_option=$argument
        ;;
    -xnone)
        language_set=
        hip_in_force=
        ;;
    -x?*)
        language_set=1
        hip_in_force=
        ;;
    -) inputs=1 ;;
    -*) ;;
    *.cpp | *.cc | *.cxx | *.c++ | *.C | *.cu | *.hip)
        inputs=1
        if [[ -z $language_set && -z $hip_in_force ]]; then
            arguments+=(-x hip)
            hip_in_force=1
        fi
        ;;
    *)
        inputs=1
        # Only before another input: clang warns about a last -x that no input follows.
        if [[ -n $hip_in_force ]]; then
            arguments+=(-x none)
            hip_in_force=
        fi
        ;;
    esac
    arguments+=("$argument")
done

# -isystem: clang looks into a ROCm's include directory after the system's, where HIP 5.2's headers are.
before=("--rocm-path=$prefix" "--rocm-device-lib-path=$prefix/amdgcn/bitcode" -D__HIP_PLATFORM_AMD__=1
    -isystem "$prefix/include")
after=()
if ((inputs)); then
    [[ -n $optimises ]] || before+=(-O3)
    if [[ -n $links ]]; then
        if [[ ! -e $prefix/lib/libamdhip64.so ]]; then
            echo "hipcc: $prefix has no lib/libamdhip64.so to link with: assemble it with" \
                "rocm_prefix.sh --standin or --hip-library FILE" >&2
            exit 1
        fi
        # --hip-link adds ROCm's lib after the system's, where HIP 5.2's library is; -L comes before both.
        before+=(--hip-link --rtlib=compiler-rt -unwindlib=libgcc "-L$prefix/lib")
        # RUNPATH, not RPATH: LD_LIBRARY_PATH can still put another libamdhip64 in front.
        [[ -z $adds_rpath ]] || after+=(-Xlinker --enable-new-dtags -Xlinker -rpath -Xlinker "$prefix/lib")
    fi
fi

# As ROCm's: words appended by the environment. They are split at blanks and not read by a shell.
append=()
if ((inputs)); then
    read -ra append <<<"${HIPCC_COMPILE_FLAGS_APPEND:-}"
    after+=("${append[@]}")
    if [[ -n $links ]]; then
        read -ra append <<<"${HIPCC_LINK_FLAGS_APPEND:-}"
        after+=("${append[@]}")
    fi
fi

if [[ ${HIPCC_VERBOSE:-0} != 0 ]]; then
    printf 'hipcc-cmd:' >&2
    printf ' %q' "$clang" "${before[@]}" "${arguments[@]}" "${after[@]}" >&2
    printf '\n' >&2
fi
exec "$clang" "${before[@]}" "${arguments[@]}" "${after[@]}"
