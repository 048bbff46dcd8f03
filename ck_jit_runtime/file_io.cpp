// SPDX-License-Identifier: MIT
#include "file_io.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ck_jit {

namespace {

// Keeps SIGXFSZ from this thread, and swallows one that a write raised meanwhile.
class FileSizeSignalBlock {
  public:
    FileSizeSignalBlock() {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    }
    ~FileSizeSignalBlock() {
        const int error = errno;
        const timespec no_wait{};
        if (sigismember(&before_, SIGXFSZ) == 0)
            while (sigtimedwait(&signal_, nullptr, &no_wait) == SIGXFSZ) {
            }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }

  private:
    sigset_t signal_;
    sigset_t before_;
};

} // namespace

Fd &Fd::operator=(Fd &&other) noexcept {
    if (this != &other) {
        reset();
        fd_ = other.release();
    }
    return *this;
}

int Fd::release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
}

void Fd::reset() {
    if (fd_ >= 0)
        ::close(fd_);
    fd_ = -1;
}

std::optional<std::string> read_all(int fd) {
    struct stat status;
    if (::fstat(fd, &status) != 0)
        return std::nullopt;
    std::string bytes;
    bytes.resize(status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0);
    std::size_t filled = 0;
    for (;;) {
        if (filled == bytes.size())
            bytes.resize(bytes.size() + 4096); // files in /proc have size 0; others may have grown
        const ssize_t got = ::pread(fd, &bytes[filled], bytes.size() - filled, static_cast<off_t>(filled));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return std::nullopt;
        if (got == 0)
            break;
        filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
}

std::optional<std::string> read_file(const std::string &path) {
    // O_NONBLOCK: opening a fifo must not wait for a writer.
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status;
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return std::nullopt;
    return read_all(file.get());
}

bool write_all(int fd, std::string_view bytes) {
    const FileSizeSignalBlock block;
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

} // namespace ck_jit
