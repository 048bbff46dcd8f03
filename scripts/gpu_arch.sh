#!/usr/bin/env bash
# Prints the gfx name of this machine's first AMD GPU, as in gfx90a, or exits with status 1 when there is none.
set -euo pipefail

# The kernel's own table: it is there with the driver alone and needs no ROCm.
# KFD_TOPOLOGY is for the tests of this script.
topology=${KFD_TOPOLOGY:-/sys/class/kfd/kfd/topology/nodes}

for properties in "$topology"/*/properties; do
    [[ -r $properties ]] || continue
    while read -r name value; do
        # CPUs are nodes too, with version 0. 90010 is 9.0.10: major, two digits minor, two digits stepping in hex.
        if [[ $name == gfx_target_version && $value != 0 ]]; then
            printf 'gfx%d%x%x\n' $((value / 10000)) $((value / 100 % 100)) $((value % 100))
            exit 0
        fi
    done <"$properties"
done
echo "gpu_arch.sh: no AMD GPU in $topology" >&2
exit 1
