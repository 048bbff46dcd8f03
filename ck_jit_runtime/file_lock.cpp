// SPDX-License-Identifier: MIT
#include "file_lock.h"

#include "environment.h"
#include "failure.h"
#include "private_dir.h"
#include "stderr_log.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ck_jit {

namespace {

std::int64_t now_ns() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch())
        .count(); // one clock for all processes
}

PrivateDir open_lock_dir(const std::string &chosen, const std::string &parent) {
    if (!chosen.empty())
        return open_private_dir(chosen, IfMissing::create);
    return open_private_subdir(open_private_dir(parent, IfMissing::create), "lock");
}

// Where other processes look too: the same order in each.
std::optional<PrivateDir> find_lock_dir() {
    std::string reason;
    for (const auto &[chosen, parent] :
         {std::pair(config().lock_dir, config().scratch_dir), std::pair(std::string(), cache_dir())})
        try {
            return open_lock_dir(chosen, parent);
        } catch (const Failure &failure) {
            reason += (reason.empty() ? "" : "; ") + std::string(failure.what());
        }
    static std::atomic<bool> told{false};
    if (!told.exchange(true))
        log_line("no directory for lock files, so other processes may compile the same blobs: " + reason);
    return std::nullopt;
}

Fd open_lock_file(const PrivateDir &dir, const std::string &name) {
    return Fd(
        ::openat(dir.fd.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
}

// 0 or an errno.
int lock_fd(int fd, int how) {
    while (::flock(fd, how) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

} // namespace

FileLock::FileLock(const std::string &name) : started_(now_ns()) {
    for (;;) {
        const std::optional<PrivateDir> dir = find_lock_dir();
        if (!dir)
            return;
        ParentOnlyFd fd(open_lock_file(*dir, name));
        if (!fd)
            return;
        int error = lock_fd(fd.get(), LOCK_EX | LOCK_NB);
        if (error == EWOULDBLOCK) {
            waited_ = true;
            error = lock_fd(fd.get(), LOCK_EX);
        }
        struct stat status;
        if (error != 0 || ::fstat(fd.get(), &status) != 0)
            return; // a file system without locks
        if (status.st_nlink == 0)
            continue; // its holder removed it: the lock that counts is on a new file by now
        path_ = dir->join(name);
        fd_ = std::move(fd);
        return;
    }
}

FileLock::~FileLock() {
    if (!fd_)
        return;
    if (remove_)
        ::unlink(path_.c_str());
    // Not by closing alone: a child that another thread is just starting may still have a copy.
    ::flock(fd_.get(), LOCK_UN);
}

std::string FileLock::failure_while_waiting() const {
    if (!fd_ || !waited_)
        return "";
    const std::string record = read_all(fd_.get()).value_or("");
    char *end = nullptr;
    const std::int64_t when = std::strtoll(record.c_str(), &end, 10);
    // Older ones are no news, younger ones are of before the last boot.
    return when >= started_ && when <= now_ns() && *end == ' ' ? std::string(end + 1) : "";
}

void FileLock::leave_failure(const std::string &text) {
    if (fd_ && ::ftruncate(fd_.get(), 0) == 0 && ::lseek(fd_.get(), 0, SEEK_SET) == 0)
        write_all(fd_.get(), std::to_string(now_ns()) + " " + text);
}

JobSlot::JobSlot() {
    using namespace std::chrono;
    for (auto pause = milliseconds(2);; pause = std::min(2 * pause, milliseconds(50))) {
        const std::optional<PrivateDir> dir = find_lock_dir();
        if (!dir)
            return;
        for (unsigned i = 0; i < config().jobs; ++i) {
            ParentOnlyFd fd(open_lock_file(*dir, "job." + std::to_string(i)));
            const int error = fd ? lock_fd(fd.get(), LOCK_EX | LOCK_NB) : errno;
            if (error == EWOULDBLOCK)
                continue;
            if (error == 0)
                fd_ = std::move(fd);
            return; // either ours, or a file system without locks
        }
        std::this_thread::sleep_for(pause); // no call waits for any of several locks
    }
}

} // namespace ck_jit
