/* The C interface of the thesis (table 3.1), for MPI libraries: maps from the ranks of a communicator to those of the
 * world.
 *
 * Every function that can fail returns 0, or 1 after a mistake, which CMError then describes. A map may be asked by
 * many threads at once; nobody may ask while somebody inserts. The thesis's CMFind for positions is CMRank here, for C
 * has no overloads. */
#ifndef LONGSHORE_RANKS_COMPACT_MAP_H
#define LONGSHORE_RANKS_COMPACT_MAP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CMMap CMMap;
typedef struct CMIterator CMIterator;

/* What CMSetStrategy makes small; CM_HYBRID weighs both, with alpha of the time. */
typedef enum { CM_TIME, CM_SPACE, CM_HYBRID } CMStrategy;

#define CM_NOBODY (-1) /* the position of those who are not members */

/* A map of nobody, and of everybody, in a world of so many ranks. NULL where there is no memory or no such world. */
CMMap* CMCreate(int64_t world);
CMMap* CMWorldCreate(int64_t world);
void CMKill(CMMap* map);

/* Members that follow those there are: one, those of an array, or first, first + stride, ... up to last. Each call
 * chooses the representation anew, so arrays and ranges are to be preferred. Nothing changes after a mistake. */
int CMInsert(CMMap* map, int64_t rank);
int CMBlockInsert(CMMap* map, const int64_t* ranks, int64_t n);
int CMRangeInsert(CMMap* map, int64_t first, int64_t last, int64_t stride);

/* Members in order. CMIteratorNext returns 0 and a rank, or 1 after the last. The map must outlive the iterator and not
 * change. */
CMIterator* CMIteratorCreate(const CMMap* map);
void CMIteratorFree(CMIterator* iterator);
int CMIteratorNext(CMIterator* iterator, int64_t* rank);
void CMIteratorRewind(CMIterator* iterator);

/* SELECT: the world rank at a position, at each of an array, at each of a range. */
int CMFind(const CMMap* map, int64_t position, int64_t* rank);
int CMBlockFind(const CMMap* map, const int64_t* positions, int64_t n, int64_t* ranks);
int CMRangeFind(const CMMap* map, int64_t first, int64_t last, int64_t stride, int64_t* ranks);
/* RANK: the position of a world rank, or CM_NOBODY; also after a mistake, which CMError describes. */
int64_t CMRank(const CMMap* map, int64_t rank);

/* Takes the representation that the strategy prefers, now and after each insertion. */
int CMSetStrategy(CMMap* map, CMStrategy strategy, double alpha);

int64_t CMSize(const CMMap* map);
int64_t CMBytes(const CMMap* map);              /* kept, with all indexes */
const char* CMRepresentation(const CMMap* map); /* "elias-fano" */
/* What was wrong with the calling thread's last mistake with this map; "" if there was none. */
const char* CMError(const CMMap* map);

#ifdef __cplusplus
}
#endif

#endif
