/// Transfers and their compositions: what fits together, and how it is written.
#include "longshore/model/copy_transfer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace longshore {

namespace {

constexpr std::array kind_names{"C", "S", "F", "R", "D", "Nd", "Nadp"};

[[noreturn]] void reject(const std::string& message) { throw Error(ErrorKind::argument, message); }

std::string text_of(ReferencePattern pattern, Notation notation) {
  if (pattern.stride == ReferencePattern::by_index) return notation == Notation::paper ? "ω" : "w";
  const std::string stride = std::to_string(pattern.stride);
  return pattern.block == 1 ? stride : stride + "[" + std::to_string(pattern.block) + "]";
}

void check(ReferencePattern pattern) {
  if (pattern.stride < ReferencePattern::by_index)
    reject("stride " + std::to_string(pattern.stride) +
           " is no reference pattern; there are 0 (fixed), 1 (contiguous), n (strided) and ω (indexed)");
  const Index longest = pattern.strided() ? pattern.stride - 1 : 1;
  if (pattern.block < 1 || pattern.block > longest)
    reject("blocks of " + std::to_string(pattern.block) + " words with stride " + text_of(pattern, Notation::paper) +
           "; they can have 1 to " + std::to_string(longest));
}

void check(const BasicTransfer& t) {
  check(t.read);
  check(t.write);
  const ReferencePattern fixed{0};
  const bool sends = t.kind == TransferKind::load_send || t.kind == TransferKind::fetch_send;
  const bool receives = t.kind == TransferKind::receive_store || t.kind == TransferKind::receive_deposit;
  if ((receives || t.network()) && t.read != fixed)
    reject(std::string(to_string(t.kind)) + " reads 0, a fixed place, and not " + text_of(t.read, Notation::paper));
  if ((sends || t.network()) && t.write != fixed)
    reject(std::string(to_string(t.kind)) + " writes 0, a fixed place, and not " + text_of(t.write, Notation::paper));
  if (!t.congestion) return;
  if (!t.network()) reject(std::string(to_string(t.kind)) + " has no congestion; only Nd and Nadp have");
  if (!(*t.congestion >= 1 && *t.congestion <= 1e30))
    reject("a congestion of " + std::to_string(*t.congestion) + "; it must be finite and at least 1");
}

}  // namespace

const char* to_string(TransferKind kind) { return kind_names[std::size_t(kind)]; }

TransferKind transfer_kind(std::string_view name) {
  const auto found = std::find(kind_names.begin(), kind_names.end(), name);
  if (found == kind_names.end()) reject("'" + std::string(name) + "' is none of C, S, F, R, D, Nd and Nadp");
  return TransferKind(found - kind_names.begin());
}

std::string BasicTransfer::to_string(Notation notation) const {
  const std::string name = longshore::to_string(kind);
  if (!network()) return text_of(read, notation) + name + text_of(write, notation);
  if (!congestion) return name;
  char digits[32];
  return name + "@" + std::string(digits, std::to_chars(digits, std::end(digits), *congestion).ptr);
}

BasicTransfer local_copy(ReferencePattern read, ReferencePattern write) {
  return {TransferKind::copy, read, write, {}};
}
BasicTransfer load_send(ReferencePattern read) { return {TransferKind::load_send, read, 0, {}}; }
BasicTransfer fetch_send(ReferencePattern read) { return {TransferKind::fetch_send, read, 0, {}}; }
BasicTransfer receive_store(ReferencePattern write) { return {TransferKind::receive_store, 0, write, {}}; }
BasicTransfer receive_deposit(ReferencePattern write) { return {TransferKind::receive_deposit, 0, write, {}}; }
BasicTransfer network_data(std::optional<double> congestion) { return {TransferKind::network_data, 0, 0, congestion}; }
BasicTransfer network_address_data(std::optional<double> congestion) {
  return {TransferKind::network_address_data, 0, 0, congestion};
}

TransferExpression::TransferExpression(BasicTransfer transfer) : transfer_(transfer) { check(transfer); }

TransferExpression::TransferExpression(Composition composition, std::vector<TransferExpression> parts)
    : composition_(composition) {
  for (auto& part : parts) {
    if (part.composition_ == composition)  // (a ∘ b) ∘ c is a ∘ b ∘ c
      std::move(part.parts_.begin(), part.parts_.end(), std::back_inserter(parts_));
    else
      parts_.push_back(std::move(part));
  }
  for (const auto& part : parts_) nesting_ = std::max(nesting_, part.nesting_ + 1);
  if (nesting_ > nesting_limit)
    reject("compositions are nested " + std::to_string(nesting_) + " deep, at most " + std::to_string(nesting_limit));
}

TransferExpression TransferExpression::sequence(std::vector<TransferExpression> steps) {
  if (steps.empty()) reject("a sequence of no steps");
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (steps[i - 1].write() != steps[i].read())
      reject(steps[i].to_string() + " reads pattern " + text_of(steps[i].read(), Notation::paper) + ", and " +
             steps[i - 1].to_string() + " before it writes " + text_of(steps[i - 1].write(), Notation::paper));
  if (steps.size() == 1) return std::move(steps.front());
  return {Composition::sequence, std::move(steps)};
}

TransferExpression TransferExpression::parallel(std::vector<TransferExpression> members) {
  if (members.empty()) reject("a parallel composition of no members");
  if (members.size() == 1) return std::move(members.front());
  return {Composition::parallel, std::move(members)};
}

ReferencePattern TransferExpression::read() const {
  return composition_ == Composition::basic ? transfer_.read : parts_.front().read();
}

ReferencePattern TransferExpression::write() const {
  return composition_ == Composition::basic ? transfer_.write : parts_.back().write();
}

std::string TransferExpression::to_string(Notation notation) const {
  if (composition_ == Composition::basic) return transfer_.to_string(notation);
  const bool ascii = notation == Notation::ascii, steps = composition_ == Composition::sequence;
  std::string text;
  for (const auto& part : parts_) {
    if (!text.empty()) text += steps ? (ascii ? " o " : " ∘ ") : (ascii ? " || " : " ‖ ");
    const std::string inner = part.to_string(notation);
    text += part.composition_ == Composition::basic ? inner : "(" + inner + ")";
  }
  return text;
}

bool TransferExpression::operator==(const TransferExpression& other) const {
  return composition_ == other.composition_ && transfer_ == other.transfer_ && parts_ == other.parts_;
}

TransferExpression operator>>(TransferExpression before, TransferExpression after) {
  return TransferExpression::sequence({std::move(before), std::move(after)});
}

TransferExpression operator|(TransferExpression one, TransferExpression other) {
  return TransferExpression::parallel({std::move(one), std::move(other)});
}

}  // namespace longshore
