! Makes communicators and groups from Fortran, by the old names and then by those of mpi_f08, for the profile of communicators to
! find. A program that begins and ends by the old names, or a library that does so by the new ones. The handles of MPI_COMM_WORLD
! and MPI_ERRORS_RETURN are WORLD and ERRORS_RETURN; no module is used, so that no compiler's version matters.
#ifdef NAME
subroutine NAME(make)(error)
  implicit none
  integer :: error, rank, size, half, copy, grid, row, everybody, some, turned, team
  integer :: triplets(3, 1)
  logical :: periods(2), remain(2)

  call NAME(mpi_comm_rank)(WORLD, rank, error)
  call NAME(mpi_comm_size)(WORLD, size, error)
  call NAME(mpi_comm_split)(WORLD, mod(rank, 2), -rank, half, error)
  call NAME(mpi_comm_dup)(half, copy, error)
  periods = .true.
  call NAME(mpi_cart_create)(WORLD, 2, (/ size / 2, 2 /), periods, .false., grid, error)
  remain = (/ .false., .true. /)
  call NAME(mpi_cart_sub)(grid, remain, row, error)
  call NAME(mpi_comm_group)(WORLD, everybody, error)
  triplets(:, 1) = (/ size - 1, 1, -2 /)
  call NAME(mpi_group_range_incl)(everybody, 1, triplets, some, error)
  call NAME(mpi_group_incl)(everybody, 2, (/ 2, 0 /), turned, error)
  call NAME(mpi_comm_create)(WORLD, some, team, error)
  call NAME(mpi_group_free)(turned, error)
  call NAME(mpi_comm_free)(copy, error)
end subroutine
#else
#define NAME(procedure) procedure
#include "rank_profile.f90"
#undef NAME
#define NAME(procedure) procedure/**/_f08
#include "rank_profile.f90"
#undef NAME
#ifdef PROGRAM
#define NAME(procedure) procedure
program profiled
#else
#define NAME(procedure) procedure/**/_f08
subroutine profiled
#endif
  implicit none
  integer :: error, rank, made
  logical :: periods(2)

  call NAME(mpi_init)(error)
  call make(error)
  if (error == 0) call make_f08(error)
  if (error /= 0) stop 1
  call mpi_comm_set_errhandler(WORLD, ERRORS_RETURN, error)
  periods = .true.
  call mpi_cart_create_f08(WORLD, -1, (/ 1, 1 /), periods, .false., made, error)
  call mpi_comm_rank(WORLD, rank, made)
  if (error /= 0) write (*, '(a, i0)') 'done by rank ', rank
  call NAME(mpi_finalize)(error)
end
#endif
