#include "msgpack.h"

namespace hip_standin {
namespace {

class Parser {
  public:
    explicit Parser(ByteView bytes) : bytes_(bytes) {}

    Msgpack value(int depth = 0) {
        if (depth > 32)
            throw std::runtime_error("metadata is nested too deeply");
        const uint8_t tag = take<uint8_t>();
        if (tag < 0x80)
            return integer(tag);
        if (tag < 0x90)
            return map(tag & 0xf, depth);
        if (tag < 0xa0)
            return array(tag & 0xf, depth);
        if (tag < 0xc0)
            return text(tag & 0x1f);
        if (tag >= 0xe0)
            return integer(static_cast<int8_t>(tag));
        switch (tag) {
        case 0xc0:
            return {};
        case 0xc2:
        case 0xc3:
            return boolean(tag & 1);
        case 0xc4: // binary, read as text
        case 0xd9:
            return text(take<uint8_t>());
        case 0xc5:
        case 0xda:
            return text(take<uint16_t>());
        case 0xc6:
        case 0xdb:
            return text(take<uint32_t>());
        case 0xcc:
            return integer(take<uint8_t>());
        case 0xcd:
            return integer(take<uint16_t>());
        case 0xce:
            return integer(take<uint32_t>());
        case 0xcf:
            return integer(static_cast<int64_t>(take<uint64_t>()));
        case 0xd0:
            return integer(static_cast<int8_t>(take<uint8_t>()));
        case 0xd1:
            return integer(static_cast<int16_t>(take<uint16_t>()));
        case 0xd2:
            return integer(static_cast<int32_t>(take<uint32_t>()));
        case 0xd3:
            return integer(static_cast<int64_t>(take<uint64_t>()));
        case 0xdc:
            return array(take<uint16_t>(), depth);
        case 0xdd:
            return array(take<uint32_t>(), depth);
        case 0xde:
            return map(take<uint16_t>(), depth);
        case 0xdf:
            return map(take<uint32_t>(), depth);
        default:
            throw std::runtime_error("metadata has a MessagePack type that AMDGPU does not use");
        }
    }

  private:
    // MessagePack is big-endian.
    template <typename T> T take() {
        uint64_t value = 0;
        for (size_t i = 0; i < sizeof(T); ++i)
            value = value << 8 | bytes_.read<uint8_t>(position_++);
        return static_cast<T>(value);
    }

    static Msgpack integer(int64_t value) {
        Msgpack result;
        result.type = Msgpack::Type::integer;
        result.integer = value;
        return result;
    }

    static Msgpack boolean(bool value) {
        Msgpack result = integer(value);
        result.type = Msgpack::Type::boolean;
        return result;
    }

    Msgpack text(size_t size) {
        Msgpack result;
        result.type = Msgpack::Type::text;
        result.text = bytes_.slice(position_, size).text();
        position_ += size;
        return result;
    }

    Msgpack array(size_t size, int depth) {
        Msgpack result;
        result.type = Msgpack::Type::array;
        for (size_t i = 0; i < size; ++i)
            result.items.push_back(value(depth + 1));
        return result;
    }

    Msgpack map(size_t size, int depth) {
        Msgpack result;
        result.type = Msgpack::Type::map;
        for (size_t i = 0; i < size; ++i) {
            std::string key = value(depth + 1).text;
            result.map.emplace_back(std::move(key), value(depth + 1));
        }
        return result;
    }

    ByteView bytes_;
    size_t position_ = 0;
};

} // namespace

const Msgpack *Msgpack::find(const char *key) const {
    for (const auto &entry : map)
        if (entry.first == key)
            return &entry.second;
    return nullptr;
}

int64_t Msgpack::integer_at(const char *key, int64_t otherwise) const {
    const Msgpack *value = find(key);
    return value && value->type == Type::integer ? value->integer : otherwise;
}

std::string Msgpack::text_at(const char *key) const {
    const Msgpack *value = find(key);
    return value && value->type == Type::text ? value->text : std::string();
}

Msgpack parse_msgpack(ByteView bytes) { return Parser(bytes).value(); }

} // namespace hip_standin
