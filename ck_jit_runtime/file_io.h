// SPDX-License-Identifier: MIT
//
// File descriptors and whole-file reads and writes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Owns a descriptor. Every one the runtime opens is close-on-exec, so that no child gets it.
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd &&other) noexcept : fd_(other.release()) {}
    Fd &operator=(Fd &&other) noexcept;
    ~Fd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release();
    void reset();

  private:
    int fd_ = -1;
};

// All bytes of an open file from its start; nothing on an error (errno is set).
std::optional<std::string> read_all(int fd);

// All bytes of the regular file at `path`; nothing if there is none that can be read.
std::optional<std::string> read_file(const std::string &path);

// True when every byte was written; otherwise errno is set. A file-size limit is an error here (EFBIG),
// not the death of the process by SIGXFSZ.
bool write_all(int fd, std::string_view bytes);

} // namespace ck_jit
