#!/usr/bin/env bash
# bin/hipconfig of the prefix that rocm_prefix.sh assembles: the questions that build systems ask. aiter's generators
# refuse to run without its --version.
set -euo pipefail

prefix=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")

# As in ROCm's: the answer without a line's end.
case ${1:-} in
--version | -v) printf '%s' "$("$prefix/bin/hipcc" --short-version)" ;;
--path | -p | --rocmpath | -R) printf '%s' "$prefix" ;;
--platform | -P) printf 'amd' ;;
--compiler | -c) printf 'clang' ;;
--runtime | -r) printf 'rocclr' ;;
--hipclangpath | -l) printf '%s' "$prefix/llvm/bin" ;;
--cpp_config | -C) printf ' -D__HIP_PLATFORM_AMD__= -I%s/include' "$prefix" ;;
*)
    echo "usage: hipconfig --version | --path | --rocmpath | --platform | --compiler | --runtime | --hipclangpath" \
        "| --cpp_config" >&2
    exit 2
    ;;
esac
