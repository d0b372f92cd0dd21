#pragma once
// REPRISE_SANITIZED is 1 under a sanitizer that replaces the allocator, otherwise 0.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPRISE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPRISE_SANITIZED 1
#endif
#endif
#ifndef REPRISE_SANITIZED
#define REPRISE_SANITIZED 0
#endif
