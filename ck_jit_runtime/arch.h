// SPDX-License-Identifier: MIT
//
// GPU architectures, as target ids: a processor and optional features, "gfx90a:sramecc+:xnack-".
#pragma once

#include <string>
#include <string_view>

namespace [[gnu::visibility("hidden")]] ck_jit {

// What --offload-arch is to be: the architecture this library was built for that the running device
// (CK_JIT_ARCH, if set) can execute. The same for the whole process once it is known. Throws Failure that
// names both sides.
const std::string &running_arch();

// True when code for target id `code` runs on `device`: the same processor, and no feature that the two
// set differently. A feature that one of them leaves open fits either way.
bool arch_runs_on(std::string_view code, std::string_view device);

} // namespace ck_jit
