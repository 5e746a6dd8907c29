// First in every ISA file.
#pragma once

#ifdef __FAST_MATH__
#error "Coppice's laws need IEEE arithmetic: build without -ffast-math"
#endif
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes its own AVX-512 headers' undefined vectors for uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// For what must live in its caller's registers.
#define COPPICE_INLINE inline __attribute__((always_inline))
