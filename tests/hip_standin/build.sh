#!/usr/bin/env bash
# Builds the stand-in libamdhip64.so.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: build.sh --include DIR --output FILE [--compiler CXX]

  --include DIR   directory with HIP's headers (hip/hip_runtime_api.h)
  --output FILE   the library; appears whole or not at all
  --compiler CXX  default: $CXX or g++
EOF
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
compiler=${CXX:-g++}
include=
output=
while (($# > 1)); do
    case $1 in
    --include) include=$2 ;;
    --output) output=$2 ;;
    --compiler) compiler=$2 ;;
    *) break ;;
    esac
    shift 2
done
if (($#)) || [[ -z $include || -z $output ]]; then
    usage >&2
    exit 2
fi

scratch=$(mktemp -d "$output.XXXXXXXX")
trap 'rm -rf "$scratch"' EXIT

compile() {
    "$compiler" -std=c++17 -O1 -g1 -Wall -Wextra -Werror -fPIC -pthread -D__HIP_PLATFORM_AMD__ -isystem "$include" \
        -c "$1" -o "$scratch/$(basename "$1" .cpp).o"
}

# Two at a time: each file costs the reading of HIP's headers.
sources=("$here"/*.cpp)
for ((i = 0; i < ${#sources[@]}; i += 2)); do
    compile "${sources[i]}" &
    [[ -z ${sources[i + 1]:-} ]] || compile "${sources[i + 1]}"
    wait $!
done

# The soname of ROCm 7's library, whose headers these are. Not unloadable: its threads may be running.
"$compiler" -shared -pthread -Wl,-soname,libamdhip64.so.7 -Wl,--version-script,"$here/exports.map" -Wl,-z,defs \
    -Wl,-z,nodelete "$scratch"/*.o -ldl -o "$scratch/library"
mv -T "$scratch/library" "$output"
