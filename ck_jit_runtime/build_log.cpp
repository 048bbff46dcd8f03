// SPDX-License-Identifier: MIT
#include "build_log.h"

#include "environment.h"
#include "failure.h"
#include "private_dir.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace ck_jit {

namespace {

constexpr std::size_t kMaxFile = 1 << 20;
constexpr std::size_t kMaxLine = 400;

bool names_an_error(const std::string &line) {
    for (const char *word : {"error:", "Error:", "ERROR:", "error :"})
        if (line.find(word) != line.npos)
            return true;
    return false;
}

} // namespace

BuildLog::BuildLog(const std::string &entry) {
    for (const std::string &parent : {cache_dir(), config().scratch_dir})
        try {
            const PrivateDir dir = open_private_subdir(open_private_dir(parent, IfMissing::create), "log");
            const std::string name = entry + ".log";
            file_ = Fd(::openat(dir.fd.get(), name.c_str(),
                                O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
            if (file_) {
                path_ = dir.join(name);
                return;
            }
        } catch (const Failure &) {
            // A build without a log is better than no build.
        }
}

void BuildLog::add(std::string_view output) {
    const std::string_view kept = output.substr(0, kMaxFile - std::min(kMaxFile, written_));
    written_ += kept.size();
    dropped_ += output.size() - kept.size();
    if (file_ && !write_all(file_.get(), kept))
        file_.reset(); // disk full; the first error line is still known
    if (error_is_sure_)
        return;
    for (const char c : output)
        if (c == '\n')
            end_of_line();
        else if (line_.size() < kMaxLine)
            line_ += c;
}

void BuildLog::end_of_line() {
    const bool sure = names_an_error(line_);
    if (!error_is_sure_ && !line_.empty() && (sure || error_.empty())) {
        error_ = line_;
        error_is_sure_ = sure;
    }
    line_.clear();
}

void BuildLog::finish(std::optional<double> seconds) {
    end_of_line();
    if (file_ && dropped_ > 0)
        write_all(file_.get(), "\n[CK-JIT] " + std::to_string(dropped_) + " more bytes were dropped\n");
    if (file_ && seconds) {
        char line[64];
        std::snprintf(line, sizeof line, "[CK-JIT] compiled in %.1f s\n", *seconds);
        write_all(file_.get(), line);
    }
    file_.reset();
    if (written_ == 0 && !seconds && !path_.empty()) {
        ::unlink(path_.c_str());
        path_.clear();
    }
}

} // namespace ck_jit
