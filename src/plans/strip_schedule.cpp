#include "longshore/plans/strip_schedule.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>

namespace longshore {

namespace {

std::string shortest(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

/// "fixed(4096, 2)": a word and numbers.
class ScheduleParser {
 public:
  explicit ScheduleParser(std::string_view text) : text_(text) {}

  StripSchedule run() {
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (word == "small" || word == "vectorized") {
      end();
      return word == "small" ? StripSchedule::small() : StripSchedule::vectorized();
    }
    if (word != "fixed" && word != "variable")
      fail(begin, "expected small, vectorized, fixed(S, U) or variable(S0, f, U)");
    expect('(', "expected '(' and the elements of a strip");
    const auto size = number<Index>("the elements of a strip");
    double growth = 0;
    if (word == "variable") {
      expect(',', "expected ',' and f, by which strips grow");
      growth = number<double>("f, by which strips grow");
    }
    const auto depth = accept(',') ? number<Index>("the unroll depth") : 1;
    expect(')', "expected ')'");
    end();
    try {
      return word == "fixed" ? StripSchedule::fixed(size, depth) : StripSchedule::variable(size, growth, depth);
    } catch (const Error& error) {
      fail(begin, error.what());
    }
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;

  [[noreturn]] void fail(std::size_t place, const std::string& message) const {
    constexpr std::size_t around = 48;
    const std::size_t first = place > around ? place - around : 0;
    std::string shown(text_.substr(first, 2 * around));
    for (char& c : shown)
      if (c < ' ' || c > '~') c = '?';
    throw Error(ErrorKind::argument, "strip schedule: " + message + ", at character " + std::to_string(place + 1) +
                                         "\n  " + shown + "\n  " + std::string(place - first, ' ') + "^");
  }
  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char sign) {
    blanks();
    if (at_ == text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }
  void expect(char sign, const char* message) {
    if (!accept(sign)) fail(at_, message);
  }
  void end() {
    blanks();
    if (at_ != text_.size()) fail(at_, "expected the end");
  }
  template <class T>
  T number(const char* what) {
    blanks();
    T value{};
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail(at_, std::string("expected ") + what);
    at_ = std::size_t(end - text_.data());
    return value;
  }
};

void check(Index elements) {
  if (elements < 0) throw Error(ErrorKind::argument, "strips of " + std::to_string(elements) + " elements");
}

void check_sizes(Index size, Index depth) {
  if (size < 1)
    throw Error(ErrorKind::argument, "strips of " + std::to_string(size) + " elements; they have at least 1");
  if (depth < 1 || depth > StripSchedule::most_depth)
    throw Error(ErrorKind::argument, "an unroll depth of " + std::to_string(depth) + "; it is in [1, " +
                                         std::to_string(StripSchedule::most_depth) + "]");
}

}  // namespace

Strips::Iterator::Iterator(Index elements, Index size, double growth)
    : elements_(elements), size_(size), growth_(growth), grown_(double(size)), strip_{0, std::min(size, elements)} {}

Strips::Iterator& Strips::Iterator::operator++() {
  const Index first = strip_.last, left = elements_ - first;
  if (growth_ > 1) {
    grown_ *= growth_;
    size_ = grown_ >= double(left) ? left : Index(grown_);
  }
  strip_ = {first, first + std::min(size_, left)};
  return *this;
}

StripSchedule StripSchedule::fixed(Index size, Index depth) {
  check_sizes(size, depth);
  return {Kind::fixed, size, 0, depth};
}

StripSchedule StripSchedule::variable(Index first_size, double growth, Index depth) {
  check_sizes(first_size, depth);
  if (growth != 0 && !(growth >= least_growth && growth <= most_growth))
    throw Error(ErrorKind::argument, "strips that grow by f = " + shortest(growth) + "; f is 0 or in [" +
                                         shortest(least_growth) + ", " + shortest(most_growth) + "]");
  return {Kind::variable, first_size, growth, depth};
}

StripSchedule StripSchedule::parse(std::string_view text) { return ScheduleParser(text).run(); }

Strips StripSchedule::strips(Index elements) const {
  check(elements);
  return Strips({elements, size_, 1 + growth_});
}

Index StripSchedule::count(Index elements) const {
  check(elements);
  if (growth_ == 0) return ceil_div(elements, size_);
  Index n = 0;
  for ([[maybe_unused]] const auto strip : strips(elements)) ++n;
  return n;
}

Index StripSchedule::buffer(Index elements, Index strips) const {
  check(elements);
  if (strips < 1) throw Error(ErrorKind::argument, "a buffer for " + std::to_string(strips) + " strips");
  if (growth_ == 0) return strips > elements / size_ ? elements : strips * size_;
  // Strips grow, all but the last one.
  std::deque<Index> held;
  Index sum = 0, most = 0;
  for (const auto strip : this->strips(elements)) {
    held.push_back(strip.size()), sum += strip.size();
    if (Index(held.size()) > strips) sum -= held.front(), held.pop_front();
    most = std::max(most, sum);
  }
  return most;
}

std::string StripSchedule::to_string() const {
  const std::string first = std::to_string(size_), last = ", " + std::to_string(depth_) + ")";
  switch (kind_) {
    case Kind::small: return "small";
    case Kind::vectorized: return "vectorized";
    case Kind::fixed: return "fixed(" + first + last;
    default: return "variable(" + first + ", " + shortest(growth_) + last;
  }
}

}  // namespace longshore
