/// Threads of Longshore's own, which the system may not let it have.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "longshore/core/error.hpp"

namespace longshore {

/// What is said where no thread could be started for a `use`, and what one may do `instead` of allowing more.
inline Error no_thread(const std::system_error& error, const std::string& use, const std::string& instead) {
  return {ErrorKind::transport, "no thread can be started for " + use + ": " + error.code().message() +
                                    "; allow this user more of them (ulimit -u, or the container's limit of "
                                    "processes), or " +
                                    instead};
}

template <class Body>
std::thread start_thread(Body body, const std::string& use, const std::string& instead) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw no_thread(error, use, instead);
  }
}

}  // namespace longshore
