#include "recorder.h"

#include "hip_standin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace hip_standin {
namespace {

// Names are mangled identifiers, so this is for bytes that should not be there at all.
std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            result += escape;
        } else {
            result += c;
        }
    }
    return result + '"';
}

std::string hex(const uint8_t *bytes, size_t size) {
    constexpr char digits[] = "0123456789abcdef";
    std::string result;
    result.reserve(2 * size);
    for (size_t i = 0; i < size; ++i) {
        result += digits[bytes[i] >> 4];
        result += digits[bytes[i] & 15];
    }
    return result;
}

std::string triple(const std::array<uint32_t, 3> &values) {
    return "[" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " +
           std::to_string(values[2]) + "]";
}

std::string argument_json(const KernelArgument &argument, const uint8_t *bytes) {
    return "{\"name\": " + quoted(argument.name) + ", \"kind\": " + quoted(argument.kind) +
           ", \"offset\": " + std::to_string(argument.offset) +
           ", \"size\": " + std::to_string(argument.size) + ", \"bytes\": \"" + hex(bytes, argument.size) +
           "\"}";
}

std::string arguments_json(const Kernel &kernel, const LaunchArguments &arguments) {
    std::string list;
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
        const KernelArgument &argument = kernel.arguments[i];
        const uint8_t *bytes = arguments.pointers
                                   ? static_cast<const uint8_t *>(arguments.pointers[i])
                                   : arguments.buffer.slice(argument.offset, argument.size).data();
        list += (i ? ", " : "") + argument_json(argument, bytes);
    }
    std::string json = "\"args\": [" + list + "]";
    if (!arguments.pointers)
        json += ", \"kernarg\": \"" + hex(arguments.buffer.data(), arguments.buffer.size()) + "\"";
    return json;
}

class Recorder {
  public:
    Recorder() {
        const char *path = std::getenv("HIP_STANDIN_RECORD");
        if (path && *path && !open_file(path))
            std::fprintf(stderr, "hip_standin: cannot open HIP_STANDIN_RECORD=%s\n", path);
    }

    void add(const Launch &launch, const Kernel &kernel, const LaunchArguments &arguments) {
        if (!recording_) {
            ++count_;
            return;
        }
        std::string rest =
            ", \"kernel\": " + quoted(kernel.name) + ", \"device\": " + std::to_string(launch.device) +
            ", \"arch\": " + quoted(launch.arch) + ", \"stream\": " + std::to_string(launch.stream) +
            ", \"grid\": " + triple(launch.grid) + ", \"block\": " + triple(launch.block) +
            ", \"dynamic_shared_bytes\": " + std::to_string(launch.dynamic_shared_bytes) + ", " +
            arguments_json(kernel, arguments) + "}";
        const std::lock_guard<std::mutex> lock(mutex_);
        std::string line = "{\"sequence\": " + std::to_string(count_++) + rest;
        if (file_ >= 0)
            append(line + "\n");
        launches_.push_back(std::move(line));
    }

    size_t count() const { return count_; }

    size_t copy(size_t index, char *buffer, size_t capacity) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (index >= launches_.size())
            return 0;
        const std::string &line = launches_[index];
        if (capacity) {
            const size_t copied = std::min(capacity - 1, line.size());
            line.copy(buffer, copied);
            buffer[copied] = '\0';
        }
        return line.size();
    }

    void reset() {
        const std::lock_guard<std::mutex> lock(mutex_);
        launches_.clear();
        count_ = 0;
    }

    void set_recording(bool on) { recording_ = on; }

    bool open_file(const char *path) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (file_ >= 0)
            close(file_);
        file_ = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
        return file_ >= 0 || !path || !*path;
    }

  private:
    // One write to a file opened with O_APPEND: lines of several processes do not mix, and none is lost in a
    // buffer when a process is killed.
    void append(const std::string &line) {
        ssize_t written;
        do
            written = write(file_, line.data(), line.size());
        while (written < 0 && errno == EINTR);
        if (written != static_cast<ssize_t>(line.size()))
            std::fprintf(stderr, "hip_standin: a launch could not be written to the record file\n");
    }

    std::mutex mutex_;
    std::atomic<bool> recording_{true};
    std::atomic<size_t> count_{0};
    std::vector<std::string> launches_;
    int file_ = -1;
};

// Never destroyed: a launch may come from another library's destructor.
Recorder &recorder() {
    static Recorder &instance = *new Recorder;
    return instance;
}

} // namespace

void record_launch(const Launch &launch, const Kernel &kernel, const LaunchArguments &arguments) {
    recorder().add(launch, kernel, arguments);
}

} // namespace hip_standin

size_t hip_standin_launch_count() { return hip_standin::recorder().count(); }

size_t hip_standin_launch_json(size_t index, char *buffer, size_t capacity) {
    return hip_standin::recorder().copy(index, buffer, capacity);
}

void hip_standin_reset() { hip_standin::recorder().reset(); }

void hip_standin_set_recording(int on) { hip_standin::recorder().set_recording(on != 0); }

int hip_standin_set_record_file(const char *path) { return hip_standin::recorder().open_file(path) ? 0 : -1; }
