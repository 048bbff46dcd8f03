// SPDX-License-Identifier: MIT
//
// Directories and files that only this user (or root) can have written.
#pragma once

#include "file_io.h"

#include <string>
#include <sys/stat.h>

namespace [[gnu::visibility("hidden")]] ck_jit {

struct PrivateDir {
    std::string path;
    Fd fd; // use it with the *at() functions: the path may mean another directory by now

    std::string join(const std::string &name) const { return path + "/" + name; }
};

enum class IfMissing { create, fail };

// Opens the directory, made with mode 0700 where asked (and its parents). Throws Failure with the reason
// when it is missing, a symbolic link, owned by another user than this one or root, or writable by group
// or others; also when a parent lets everybody rename its entries. The owners of the parents are trusted:
// they could do anything anyway.
PrivateDir open_private_dir(const std::string &path, IfMissing if_missing);
PrivateDir open_private_subdir(const PrivateDir &parent, const std::string &name);

// "" for a regular file that belongs to this user or root and that nobody else may write; otherwise what
// it is.
std::string why_not_ours(const struct stat &status);

} // namespace ck_jit
