#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace hip_standin {

struct Stream;
using StreamRef = std::shared_ptr<Stream>;

// A place in a stream: everything submitted up to it.
struct StreamPoint {
    StreamRef stream;
    uint64_t sequence = 0;
};

enum class RunOn {
    caller_if_idle, // work that takes no time: on the calling thread when nothing is before it
    worker          // always on the stream's own thread
};

// Streams run their work in order. As in HIP, work on the null stream of a device comes after all that was
// submitted to its other streams before, and they wait for it, unless a stream was created as non-blocking.
StreamRef create_stream(int device, bool blocking);

// The stream of a handle as the calling thread means it; an empty pointer for a handle that is none.
StreamRef find_stream(void *handle);
void *handle_of(const StreamRef &stream);

// Work submitted before still runs. False for a handle that is none, or that is a built-in stream.
bool destroy_stream(void *handle);

// 0 for null streams, then 1, 2, … in the order of creation.
uint64_t stream_number(const StreamRef &stream);
int stream_device(const StreamRef &stream);

// Returns the place of the work in the stream. The work runs after `after` too.
StreamPoint submit(const StreamRef &stream, RunOn where, std::function<void()> work,
                   std::vector<StreamPoint> after = {});

bool is_done(const StreamPoint &point);
void wait_for(const StreamPoint &point);
StreamPoint last_point(const StreamRef &stream);
void wait_for_device(int device);

} // namespace hip_standin
