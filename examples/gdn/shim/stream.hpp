// Which stream a handle means, and on which device.
#pragma once

#include <cuda_runtime_api.h>

namespace atlas_gdn {

struct StreamIdentity {
    int device = 0;
    unsigned long long id = 0;
    bool capturing = false;
};

enum class StreamAnswer { known, capturing_and_new, invalid };

// A stream's id tells streams apart that have had one handle after the other, and the per-thread default
// streams, which share one. While a stream captures the runtime does not say device and id, so they are
// remembered from the last call outside a capture; hence the warm-up call.
StreamAnswer identify(cudaStream_t stream, StreamIdentity *identity);

// Another thread may be capturing in the global mode, which forbids much, cudaMalloc included, to every
// thread that has not asked for the relaxed one.
class RelaxedCapture {
  public:
    RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture &) = delete;
    RelaxedCapture &operator=(const RelaxedCapture &) = delete;

  private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

} // namespace atlas_gdn
