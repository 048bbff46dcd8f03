// SPDX-License-Identifier: MIT
//
// What the generated entry points that take blob names include besides ck_jit_slot.h.
#pragma once

#include "ck_jit_slot.h"

#include <cstddef>

namespace [[gnu::visibility("hidden")]] ck_jit {

// The instance of the blob with this file name that defines kernel template number `kernel`. A name that
// the manifest has costs one hash lookup, no lock and no allocation. Any other name gets a slot of its
// own, which ready() fills from `ck_jit_compile.sh --blob NAME`. Null for a null or empty name, and for a
// blob of the manifest that does not define that template; the calling thread's error text is set then.
// Never throws.
Slot *slot_by_name(const char *blob, std::size_t kernel) noexcept;

} // namespace ck_jit
