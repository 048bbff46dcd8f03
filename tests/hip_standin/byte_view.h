#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace hip_standin {

// Bytes that something else owns. Reading outside them throws, so the parsers need no checks of their own.
class ByteView {
  public:
    ByteView() = default;
    ByteView(const void *data, size_t size) : data_(static_cast<const uint8_t *>(data)), size_(size) {}

    const uint8_t *data() const { return data_; }
    size_t size() const { return size_; }

    ByteView slice(uint64_t offset, uint64_t size) const {
        if (offset > size_ || size > size_ - offset)
            throw std::out_of_range("device code ends early");
        return {data_ + offset, static_cast<size_t>(size)};
    }

    template <typename T> T read(uint64_t offset) const {
        T value;
        std::memcpy(&value, slice(offset, sizeof value).data(), sizeof value);
        return value;
    }

    std::string text() const { return {reinterpret_cast<const char *>(data_), size_}; }

    bool starts_with(const char *magic) const {
        const size_t length = std::strlen(magic);
        return size_ >= length && std::memcmp(data_, magic, length) == 0;
    }

  private:
    const uint8_t *data_ = nullptr;
    size_t size_ = 0;
};

} // namespace hip_standin
