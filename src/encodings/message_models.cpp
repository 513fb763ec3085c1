#include "longshore/encodings/message_models.hpp"

#include <cstring>
#include <utility>

#include "encodings/forms.hpp"

namespace longshore {

namespace {

// A put message: "LSPM" and a version, bytes of addresses, bytes
// of data, as 64-bit words; an encoding's stored bytes; the data.
constexpr std::uint64_t put_magic = 0x2'4d'50'53'4c;
constexpr std::size_t put_header = 3 * sizeof(std::uint64_t);

Encoding encoded(const AddressRelation& relation, std::optional<EncodingKind> kind) {
  return kind ? Encoding(relation, *kind) : Encoding::automatic(relation);
}

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::argument, why); }

/// The two parts of a put message.
struct PutParts {
  std::span<const std::byte> addresses, payload;

  explicit PutParts(std::span<const std::byte> message) {
    if (message.size() < put_header)
      refuse("a put message has at least " + std::to_string(put_header) + " bytes, not " +
             std::to_string(message.size()));
    WordReader in(message.first(put_header), "the put message");
    if (in.word() != put_magic) in.refuse("does not begin as one of this version does");
    const auto of_addresses = in.word(), of_data = in.word(), rest = std::uint64_t(message.size() - put_header);
    if (of_addresses > rest || of_data != rest - of_addresses)
      in.refuse("announces " + std::to_string(of_addresses) + " bytes of addresses and " + std::to_string(of_data) +
                " of data, and has " + std::to_string(rest));
    addresses = message.subspan(put_header, of_addresses);
    payload = message.subspan(put_header + of_addresses);
  }
};

/// Goes through a half, and throws `Error(argument)` where its message's side is not dense and in order.
class HalfReader {
 public:
  HalfReader(Side side, Index element) : side_(side), element_(element) {}

  void operator()(OffsetRun run) {
    if (side_ == Side::destination)
      std::swap(run.source, run.destination), std::swap(run.source_step, run.destination_step);
    if (run.destination != at_ || (run.count > 1 && run.destination_step != element_)) refuse_place();
    at_ += run.count * element_;
  }
  void operator()(const AddressRelation::RunList& runs) {
    for (const auto& run : runs) (*this)(run);
  }
  void operator()(const AddressRelation::PairList& pairs) {
    for (const auto& pair : pairs) (*this)(OffsetRun{pair.source, pair.destination, 1, 0, 0});
  }
  void operator()(const PackedList& list) {
    const auto blocks = list.reader(0, list.elements());
    for_each_run(*blocks, [this](const OffsetRun& run) { (*this)(run); });
  }
  /// In the time that its loops take, not its pairs.
  void operator()(const LoopNest& nest) {
    if ((side_ == Side::source ? nest.contiguous_destination() : nest.contiguous_source()) != at_) refuse_place();
    at_ += nest.bytes();
  }

 private:
  [[noreturn]] void refuse_place() const {
    refuse("the addresses are no half of a relation: position " + std::to_string(at_ / element_) +
           " is not the message's next element");
  }
  Side side_;
  Index element_, at_ = 0;
};

/// Throws `Error(argument)` where the side that is not the array's is not a dense message in order.
void check_half(const Encoding& half, Side side) {
  HalfReader read(side, half.element_bytes());
  if (half.kind() == EncodingKind::nest) {
    const auto relation = half.decode();
    for (const auto& part : relation.parts()) std::visit(read, part);
  } else {
    const auto pairs = half.reader(0, half.elements());
    for_each_run(*pairs, read);
  }
}

void check_within(const Interval& extent, const Interval& bounds, const char* name) {
  if (extent.first == extent.last || (extent.first >= bounds.first && extent.last <= bounds.last)) return;
  throw Error(ErrorKind::buffer, std::string("the message touches bytes [") + std::to_string(extent.first) + ", " +
                                     std::to_string(extent.last) + ") of the " + name + ", which has [" +
                                     std::to_string(bounds.first) + ", " + std::to_string(bounds.last) + ")");
}

Encoding addresses_of(const PutParts& parts) {
  auto addresses = Encoding::from_bytes(parts.addresses, Index(parts.payload.size()));
  const Wide wanted = Wide(addresses.elements()) * addresses.element_bytes();
  if (wanted != Wide(parts.payload.size()))
    refuse("the put message has addresses for " + std::to_string(addresses.elements()) + " elements of " +
           std::to_string(addresses.element_bytes()) + " bytes and " + std::to_string(parts.payload.size()) +
           " bytes of data");
  check_half(addresses, Side::destination);
  return addresses;
}

Encoding request_of(std::span<const std::byte> request, Index most_bytes) {
  auto addresses = Encoding::from_bytes(request, most_bytes);
  if (Wide(addresses.elements()) * addresses.element_bytes() > most_bytes)
    refuse("the request asks for " + std::to_string(addresses.elements()) + " elements of " +
           std::to_string(addresses.element_bytes()) + " bytes; at most " + std::to_string(most_bytes) +
           " bytes are given");
  if (!addresses.reduction().is_replace())
    refuse("the request asks for a combining operation, which is the destination's to do");
  check_half(addresses, Side::source);
  return addresses;
}

}  // namespace

Encoding sender_half(const AddressRelation& relation, std::optional<EncodingKind> kind) {
  return encoded(relation.assembly(), kind);
}
Encoding receiver_half(const AddressRelation& relation, std::optional<EncodingKind> kind) {
  return encoded(relation.disassembly(), kind);
}

PutSender::PutSender(const AddressRelation& relation, std::optional<EncodingKind> kind)
    : assembler_(relation), payload_bytes_(relation.bytes()) {
  const auto addresses = receiver_half(relation, kind).to_bytes();
  WordWriter head;
  head.word(put_magic), head.index(Index(addresses.size())), head.index(payload_bytes_);
  head_ = head.written();
  head_.insert(head_.end(), addresses.begin(), addresses.end());
  checked_add(address_bytes(), payload_bytes_);
}

void PutSender::run(std::byte* message, const std::byte* source) const {
  std::memcpy(message, head_.data(), head_.size());
  assembler_.run(message + head_.size(), source);
}

PutMessage::PutMessage(std::span<const std::byte> message)
    : payload_(PutParts(message).payload), addresses_(addresses_of(PutParts(message))) {}

void PutMessage::deliver(std::byte* destination, Interval bounds) const {
  check_within(destination_extent(), bounds, "destination");
  // A nest is compiled in no time; what is stored symbol by symbol
  // is read only once, so that it is carried out as it is read.
  if (addresses_.kind() == EncodingKind::nest)
    RelationProgram(addresses_.decode()).run(destination, payload_.data());
  else
    addresses_.disassemble(destination, payload_.data(), 0, addresses_.elements());
}

std::vector<std::byte> get_request(const AddressRelation& relation, std::optional<EncodingKind> kind) {
  return sender_half(relation, kind).to_bytes();
}

GetRequest::GetRequest(std::span<const std::byte> request, Index most_bytes)
    : addresses_(request_of(request, most_bytes)) {}

void GetRequest::answer(std::byte* payload, const std::byte* source, Interval bounds) const {
  check_within(source_extent(), bounds, "source");
  if (addresses_.kind() == EncodingKind::nest)
    RelationProgram(addresses_.decode()).run(payload, source);
  else
    addresses_.assemble(payload, source, 0, addresses_.elements());
}

}  // namespace longshore
