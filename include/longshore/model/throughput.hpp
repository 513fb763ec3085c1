/// The copy-transfer model's numbers: what a machine's basic transfers were measured to take, and how fast an
/// expression of them is (Stricker & Gross, sections 3.3 and 4). A megabyte is 10^6 bytes; only data count, not their
/// addresses.
#pragma once

#include "longshore/model/copy_transfer.hpp"

namespace longshore {

struct MeasuredTransfer {
  BasicTransfer transfer;
  double megabytes_per_second = 0;
  bool operator==(const MeasuredTransfer&) const = default;
};

/// What transfers take at the same time must not be more than there is: the sum over them of rate times
/// `bytes_per_byte` is at most `megabytes_per_second`. The paper's 2 |xQy| < |0Cx|, a node that sends and receives at
/// once, is one byte of memory each for S, F, R and D.
struct ResourceConstraint {
  struct Use {
    TransferKind kind;
    double bytes_per_byte = 1;  ///< of the resource, for each byte of data
    bool operator==(const Use&) const = default;
  };
  std::string resource;
  std::vector<Use> uses;
  double megabytes_per_second = 0;
  bool operator==(const ResourceConstraint&) const = default;
};

/// The rates of a machine's basic transfers, and what its resources have to give. A value.
class ThroughputTable {
 public:
  /// `congestion` is what networks run at unless an expression says otherwise. Throws `Error(argument)` for a rate that
  /// is not positive and finite, and for a transfer that is there twice.
  ThroughputTable(std::string machine, std::vector<MeasuredTransfer> transfers, double congestion = 1,
                  std::vector<ResourceConstraint> constraints = {});

  const std::string& machine() const& { return machine_; }
  std::string machine() && { return std::move(machine_); }
  const std::vector<MeasuredTransfer>& transfers() const& { return transfers_; }
  std::vector<MeasuredTransfer> transfers() && { return std::move(transfers_); }
  double congestion() const { return congestion_; }
  const std::vector<ResourceConstraint>& constraints() const& { return constraints_; }
  std::vector<ResourceConstraint> constraints() && { return std::move(constraints_); }

  struct Rate {
    double megabytes_per_second = 0;
    std::vector<BasicTransfer> measured;  ///< the entries that it comes from
  };
  /// How fast a basic transfer is. What is not in the table itself is found from what is:
  /// - strides beyond the largest are as fast as that one (section 4.2), strides between two of the table (contiguous
  ///   is a stride of one block) have their time per byte interpolated linearly in the logarithm of the stride;
  /// - blocks take the figures of the longest ones in the table that are no longer (as the paper does for complex
  ///   numbers), which is a lower bound;
  /// - networks have their time per byte interpolated linearly in the congestion, and beyond the largest it grows in
  ///   proportion, as table 4 does.
  /// Throws `Error(argument)` where there is nothing to find it from; it names the transfer and what the table has.
  Rate rate(const BasicTransfer& transfer) const;
  /// The same, and nothing where there is nothing to find it from.
  std::optional<Rate> find(const BasicTransfer& transfer) const;

  bool operator==(const ThroughputTable&) const = default;

 private:
  std::string machine_;
  std::vector<MeasuredTransfer> transfers_;
  double congestion_;
  std::vector<ResourceConstraint> constraints_;
};

/// An expression's throughput, and where its time goes.
struct ThroughputEstimate {
  /// A basic transfer, in the order of the expression, or a constraint that something was reduced for.
  struct Part {
    std::string name;                     ///< as the paper writes it, or the constraint's resource
    double megabytes_per_second = 0;      ///< what it would run at by itself; of a constraint, what it allows
    double share_of_time = 0;             ///< of the whole; 0 where it is hidden behind something slower
    std::vector<BasicTransfer> measured;  ///< the table's entries that its rate comes from; none of a constraint
  };
  double megabytes_per_second = 0;
  std::vector<Part> parts;     ///< their shares add up to 1
  std::size_t bottleneck = 0;  ///< which of them takes the most of the time
};

/// Sequences take the sum of their steps' times per byte, parallel compositions the time of the slowest member (section
/// 3.3). Where a constraint is broken, what goes on at the same time is slowed down until it holds; steps spread what
/// they take of a resource evenly over their sequence (section 4). Throws as `rate` does.
ThroughputEstimate evaluate(const TransferExpression& expression, const ThroughputTable& table);

/// The paper's machines: tables 1 to 4, at the congestion of two at which "communication runs in many cases", and the
/// bandwidths that section 3.5 gives for memory and bus. The Paragon's 0R64 is not legible in table 3: 38 is what the
/// estimate of 1Q'64 in section 5.1.4 says.
ThroughputTable cray_t3d();
ThroughputTable intel_paragon();

}  // namespace longshore
