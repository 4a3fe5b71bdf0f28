#include "text/utf8.h"

#include <cstdint>

namespace wisp::text {

namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them.
struct Lead {
  size_t following;
  uint8_t low;
  uint8_t high;
};

// {0, 0, 0} for a byte that starts no character of several bytes.
Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

size_t append_utf8(std::string_view bytes, bool last, std::string& out) {
  size_t at = 0;
  while (at < bytes.size()) {
    const auto byte = static_cast<uint8_t>(bytes[at]);
    if (byte < 0x80) {
      out.push_back(bytes[at++]);
      continue;
    }
    const Lead lead = lead_of(byte);
    size_t good = 1;  // bytes of this character that are right so far
    while (good <= lead.following && at + good < bytes.size()) {
      const auto next = static_cast<uint8_t>(bytes[at + good]);
      const bool first = good == 1;
      if (next < (first ? lead.low : 0x80) || next > (first ? lead.high : 0xBF)) break;
      ++good;
    }
    if (lead.following > 0 && good == lead.following + 1) {
      out.append(bytes.substr(at, good));
    } else if (lead.following > 0 && at + good == bytes.size() && !last) {
      return at;
    } else {
      out.append(kReplacement);
    }
    at += good;
  }
  return at;
}

}  // namespace wisp::text
