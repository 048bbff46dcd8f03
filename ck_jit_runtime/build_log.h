// SPDX-License-Identifier: MIT
//
// Keeps what a compiler prints: in a file, up to a limit, and its first error line in memory.
#pragma once

#include "file_io.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace [[gnu::visibility("hidden")]] ck_jit {

class BuildLog {
  public:
    // The file <cache>/log/<entry>.log, or the same under the scratch directory; if neither can be had,
    // none.
    explicit BuildLog(const std::string &entry);

    void add(std::string_view output);

    // To be called once, at the end. The seconds of a build that went well become the last line of the file,
    // for tools that report them. The file of another one that printed nothing is removed.
    void finish(std::optional<double> seconds);

    const std::string &path() const { return path_; } // "" when there is no file
    const std::string &first_error() const {
        return error_;
    } // the first line with "error" in it, else the first line

  private:
    void end_of_line();

    Fd file_;
    std::string path_;
    std::string line_;
    std::string error_;
    bool error_is_sure_ = false;
    std::size_t written_ = 0;
    std::size_t dropped_ = 0;
};

} // namespace ck_jit
