// SPDX-License-Identifier: MIT
#include "private_dir.h"

#include "failure.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace ck_jit {

namespace {

std::string owner_or_mode_problem(const struct stat &status) {
    if (status.st_uid != ::geteuid() && status.st_uid != 0)
        return "belongs to user " + std::to_string(status.st_uid);
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by other users (remedy: chmod go-w)";
    return "";
}

void make_with_parents(const std::string &path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        ::mkdir(path.substr(0, slash).c_str(), 0700); // what fails here shows when the last one is opened
    ::mkdir(path.c_str(), 0700);
}

// In a world-writable directory without the sticky bit anybody can put another directory in the place of this
// one.
void check_parents(const std::string &path) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    std::string parent = real ? real.get() : path;
    while (parent.size() > 1) {
        parent.resize(parent.find_last_of('/'));
        struct stat status;
        if (::stat(parent.empty() ? "/" : parent.c_str(), &status) != 0)
            continue;
        if ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX))
            throw Failure(path + ": its parent " + parent + " can be written by everybody");
    }
}

PrivateDir checked(std::string path, Fd fd) {
    if (!fd) {
        const bool link = errno == ENOTDIR || errno == ELOOP;
        throw Failure(path + ": " + (link ? "is a symbolic link or no directory" : errno_text(errno)));
    }
    struct stat status;
    if (::fstat(fd.get(), &status) != 0)
        throw Failure(path + ": " + errno_text(errno));
    if (const std::string problem = owner_or_mode_problem(status); !problem.empty())
        throw Failure(path + ": " + problem);
    return {std::move(path), std::move(fd)};
}

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

} // namespace

PrivateDir open_private_dir(const std::string &path, IfMissing if_missing) {
    Fd fd(::open(path.c_str(), kOpenDir));
    if (!fd && errno == ENOENT && if_missing == IfMissing::create) {
        make_with_parents(path);
        fd = Fd(::open(path.c_str(), kOpenDir));
    }
    PrivateDir dir = checked(path, std::move(fd));
    check_parents(path);
    return dir;
}

PrivateDir open_private_subdir(const PrivateDir &parent, const std::string &name) {
    ::mkdirat(parent.fd.get(), name.c_str(), 0700);
    return checked(parent.join(name), Fd(::openat(parent.fd.get(), name.c_str(), kOpenDir)));
}

std::string why_not_ours(const struct stat &status) {
    if (!S_ISREG(status.st_mode))
        return "is no regular file";
    return owner_or_mode_problem(status);
}

} // namespace ck_jit
