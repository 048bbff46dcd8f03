// SPDX-License-Identifier: MIT
//
// The device code inside a HIP shared object (section .hip_fatbin).
#pragma once

#include <string>
#include <string_view>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Throws Failure unless the section holds a code object (an AMDGPU ELF file) that runs on `arch`. An
// empty section is accepted: a blob may have no device code. So is a compressed bundle, whose table
// cannot be read without zstd; the HIP library checks it when it is registered.
void check_device_code(std::string_view hip_fatbin, const std::string &arch);

} // namespace ck_jit
