// SPDX-License-Identifier: MIT
//
// What belongs to this machine: names for private files, and the scratch directory.
#pragma once

#include "private_dir.h"

#include <memory>
#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

// "<prefix><node>.<pid>.<number>": never the same twice, on any machine. <node> stands for the boot of
// this machine and the pid namespace, so that processes that see it can tell whether the pid in it is
// alive.
std::string private_name(const std::string &prefix);

// True for a private_name() with that prefix whose process was one of this node and is gone.
bool is_left_over(const std::string &name, const std::string &prefix);

// A directory that only this object uses; removed with it, unless the process is a fork of the one that
// made it.
class WorkDir {
  public:
    // Under Config::scratch_dir; else under Config::temp_dir; else in `last_resort` (may be ""). Throws
    // Failure.
    static std::shared_ptr<WorkDir> make(const std::string &last_resort);
    explicit WorkDir(std::string path);
    ~WorkDir();
    WorkDir(const WorkDir &) = delete;
    WorkDir &operator=(const WorkDir &) = delete;

    const std::string &path() const { return path_; }

  private:
    std::string path_;
    int owner_;
};

// Removes from the directory what killed processes left there under such names.
void remove_left_overs(const PrivateDir &dir, const std::string &prefix);

} // namespace ck_jit
