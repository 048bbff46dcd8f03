// SPDX-License-Identifier: MIT
#include "usage_record.h"

#include "environment.h"
#include "failure.h"
#include "file_io.h"
#include "stderr_log.h"

#include <cerrno>
#include <fcntl.h>

namespace ck_jit {

void record_use(const std::string &blob) {
    if (config().record_file.empty())
        return;
    const Fd file(::open(config().record_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
    // One write: lines of several processes that append to one file stay whole.
    if (!file || !write_all(file.get(), blob + "\n"))
        log_line("cannot write CK_JIT_RECORD file " + config().record_file + ": " + errno_text(errno));
}

} // namespace ck_jit
