/// The notation of transfers: a hand-written recursive descent, because its errors must point at the place.
#include <array>
#include <cctype>
#include <charconv>

#include "longshore/model/copy_transfer.hpp"

namespace longshore {

namespace {

constexpr std::size_t longest_text = std::size_t{1} << 16;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  TransferExpression run() {
    if (text_.size() > longest_text) fail(0, "the text is longer than " + std::to_string(longest_text) + " bytes");
    auto result = expression(0);
    blanks();
    if (at_ != text_.size()) fail(at_, "expected ∘ (o), ‖ (||) or the end");
    return result;
  }

 private:
  static constexpr std::string_view omega = "ω";
  std::string_view text_;
  std::size_t at_ = 0;

  /// Says at which character, counted from 1, and shows the text around it: signs of the notation as they are, other
  /// characters that a terminal may not show as question marks.
  [[noreturn]] void fail(std::size_t place, const std::string& message) const {
    constexpr std::size_t around = 48;
    std::string shown;
    std::size_t column = 0, lead = 0;
    for (std::size_t i = 0, next; i < text_.size(); i = next) {
      next = i + 1;
      while (next < text_.size() && (text_[next] & 0xc0) == 0x80) ++next;  // the other bytes of one character
      const auto sign = text_.substr(i, next - i);
      if (i < place) ++column;
      if (i + around < place || i > place + around) continue;
      if (i < place) ++lead;
      const bool known = sign == "∘" || sign == "‖" || sign == omega;
      shown += known || (sign.size() == 1 && sign[0] >= ' ' && sign[0] <= '~') ? sign : "?";
    }
    throw Error(ErrorKind::argument, "transfer expression: " + message + ", at character " +
                                         std::to_string(column + 1) + "\n  " + shown + "\n  " + std::string(lead, ' ') +
                                         "^");
  }

  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view sign) {
    blanks();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  bool digit() const { return at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); }

  Index integer() {
    Index value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail(at_, "a number that does not fit in 64 bits");
    at_ = std::size_t(end - text_.data());
    return value;
  }

  ReferencePattern pattern() {
    blanks();
    if (accept(omega) || accept("w")) return ReferencePattern::by_index;
    if (!digit()) fail(at_, "expected a reference pattern: 0, 1, a stride, ω (w)");
    ReferencePattern result = integer();
    if (accept("[")) {
      blanks();
      if (!digit()) fail(at_, "expected the words of a block");
      result.block = integer();
      if (!accept("]")) fail(at_, "expected ']' after the words of a block");
    }
    return result;
  }

  BasicTransfer basic() {
    for (const auto kind : {TransferKind::network_address_data, TransferKind::network_data})
      if (accept(to_string(kind))) {
        BasicTransfer result{kind, 0, 0, {}};
        if (!accept("@")) return result;
        blanks();
        double congestion = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), congestion);
        if (error != std::errc()) fail(at_, "expected a congestion, as in Nd@2");
        at_ = std::size_t(end - text_.data());
        result.congestion = congestion;
        return result;
      }
    if (!digit() && !text_.substr(at_).starts_with(omega) && !text_.substr(at_).starts_with("w"))
      fail(at_, "expected '(' or a basic transfer, such as 64C1, 1S0, 1F0, Nd, Nadp, 0R1 or 0Dω");
    const auto read = pattern();
    for (const auto kind : {TransferKind::copy, TransferKind::load_send, TransferKind::fetch_send,
                            TransferKind::receive_store, TransferKind::receive_deposit})
      if (accept(to_string(kind))) return {kind, read, pattern(), {}};
    fail(at_, "expected C, S, F, R or D after a pattern");
  }

  TransferExpression member(int nesting) {
    blanks();
    const std::size_t begin = at_;
    if (accept("(")) {
      if (nesting == TransferExpression::nesting_limit)
        fail(begin, "parentheses are nested more than " + std::to_string(nesting) + " deep");
      auto result = expression(nesting + 1);
      if (!accept(")")) fail(at_, "expected ∘ (o), ‖ (||) or ')'");
      return result;
    }
    return checked(begin, [&] { return TransferExpression(basic()); });
  }

  TransferExpression expression(int nesting) {
    blanks();
    const std::size_t begin = at_;
    std::vector<TransferExpression> members;
    do {
      std::vector<TransferExpression> steps;
      std::size_t place;
      do {
        blanks();
        place = at_;
        auto step = member(nesting);
        if (!steps.empty()) checked(place, [&] { return TransferExpression::sequence({steps.back(), step}); });
        steps.push_back(std::move(step));
      } while (accept("∘") || accept("o"));
      members.push_back(checked(begin, [&] { return TransferExpression::sequence(std::move(steps)); }));
    } while (accept("‖") || accept("||"));
    return checked(begin, [&] { return TransferExpression::parallel(std::move(members)); });
  }

  /// What does not fit together is an error at this place.
  template <class F>
  TransferExpression checked(std::size_t place, F&& made) const {
    try {
      return made();
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with("transfer expression: ")) throw;  // it has its place
      fail(place, error.what());
    }
  }
};

}  // namespace

TransferExpression TransferExpression::parse(std::string_view text) { return Parser(text).run(); }

}  // namespace longshore
