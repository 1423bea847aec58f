! dtrain for Fortran 2008: trains on rows in memory inside an MPI program, and predicts rows.
!     mpifort $(pkg-config --cflags dtrain) .../include/dtrain/dtrain.f90 mine.f90 $(pkg-config --libs dtrain)
! The features of a row are contiguous: x(features, rows). A status is 0 for success,
! dtrain_stopped for a run that was stopped and has saved a checkpoint, dtrain_usage for wrong
! settings or sizes, or another value of enum dt_status in base.h. dtrain_error() returns the text
! of the last failure.
module dtrain
    use, intrinsic :: iso_c_binding
    implicit none
    private
    public :: dtrain_train, dtrain_error, dtrain_predictor, dtrain_open, dtrain_predict, dtrain_close
    public :: dtrain_features, dtrain_width, dtrain_stop

    ! DT_EUSAGE, DT_STOPPED
    integer, parameter, public :: dtrain_usage = 1, dtrain_stopped = 9

    ! Error text if this module refused the last call; empty if it called the library.
    character(100) :: refusal = ''

    ! A trained model, from dtrain_open to dtrain_close.
    type :: dtrain_predictor
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! struct dt_arrays
    type, bind(c) :: c_arrays
        integer(c_size_t) :: bytes = 0 ! its size
        integer(c_int64_t) :: rows = 0
        integer(c_int) :: features = 0, targets = 0
        type(c_ptr) :: x = c_null_ptr, label = c_null_ptr, target = c_null_ptr, weight = c_null_ptr
    end type

    interface
        function dt_world_attach_fortran(comm, stall_secs, world) bind(c) result(status)
            import
            integer(c_int), value :: comm
            real(c_double), value :: stall_secs
            type(c_ptr), intent(out) :: world
            integer(c_int) :: status
        end function
        subroutine dt_world_destroy(world) bind(c)
            import
            type(c_ptr), value :: world
        end subroutine
        function dt_train_arrays(world, settings, train, eval) bind(c) result(status)
            import
            type(c_ptr), value :: world, eval
            character(kind=c_char), intent(in) :: settings(*)
            type(c_arrays), intent(in) :: train
            integer(c_int) :: status
        end function
        function dt_predictor_open(path, predictor) bind(c) result(status)
            import
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: predictor
            integer(c_int) :: status
        end function
        subroutine dt_predictor_close(predictor) bind(c)
            import
            type(c_ptr), value :: predictor
        end subroutine
        function dt_predictor_features(predictor) bind(c) result(features)
            import
            type(c_ptr), value :: predictor
            integer(c_int) :: features
        end function
        function dt_predictor_width(predictor) bind(c) result(width)
            import
            type(c_ptr), value :: predictor
            integer(c_int) :: width
        end function
        function dt_predictor_rows(predictor, raw, rows, answer, class) bind(c) result(status)
            import
            type(c_ptr), value :: predictor, class
            real(c_float), intent(in) :: raw(*)
            integer(c_size_t), value :: rows
            real(c_float), intent(out) :: answer(*)
            integer(c_int) :: status
        end function
        subroutine dt_stop_request() bind(c)
        end subroutine
        function dt_error_text() bind(c) result(text)
            import
            type(c_ptr) :: text
        end function
        function c_strlen(text) bind(c, name='strlen') result(length)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
    end interface

contains

    ! Trains as the settings say: lines of section.key=value, separated by new_line('a').
    ! Collective over the communicator (with mpi_f08: comm%MPI_VAL). Every rank passes the same
    ! rows. label: class numbers, from 0. target(targets, rows): for model.task=regress.
    subroutine dtrain_train(comm, settings, x, status, label, target)
        integer, intent(in) :: comm
        character(*), intent(in) :: settings
        real(c_float), intent(in), target, contiguous :: x(:, :)
        integer, intent(out) :: status
        integer(c_int32_t), intent(in), target, contiguous, optional :: label(:)
        real(c_float), intent(in), target, contiguous, optional :: target(:, :)
        type(c_arrays) :: rows
        type(c_ptr) :: world
        logical :: fit
        fit = .true.
        if (present(label)) fit = size(label, 1, c_int64_t) == size(x, 2, c_int64_t)
        if (present(target)) fit = fit .and. size(target, 2, c_int64_t) == size(x, 2, c_int64_t)
        call check(fit, 'dtrain_train: expected label(rows) or target(targets, rows) of x(features, rows)', status)
        if (status /= 0) return
        rows%bytes = c_sizeof(rows)
        rows%rows = size(x, 2, c_int64_t)
        rows%features = size(x, 1)
        rows%x = c_loc(x)
        if (present(label)) rows%label = c_loc(label)
        if (present(target)) then
            rows%targets = size(target, 1)
            rows%target = c_loc(target)
        end if
        status = dt_world_attach_fortran(int(comm, c_int), 600.0_c_double, world)
        if (status /= 0) return
        status = dt_train_arrays(world, settings // c_null_char, rows, c_null_ptr)
        call dt_world_destroy(world)
    end subroutine

    ! Requests a stop: the training in progress, or the next one, saves a checkpoint and returns
    ! dtrain_stopped on all ranks.
    subroutine dtrain_stop()
        call dt_stop_request()
    end subroutine

    ! Checks the sizes of a call's arrays before the library reads them.
    subroutine check(fit, text, status)
        logical, intent(in) :: fit
        character(*), intent(in) :: text
        integer, intent(out) :: status
        status = 0
        refusal = ''
        if (fit) return
        status = dtrain_usage
        refusal = text
    end subroutine

    ! Returns the text of the last failure.
    function dtrain_error() result(text)
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: from
        integer :: i
        if (refusal /= '') then
            text = trim(refusal)
            return
        end if
        from = dt_error_text()
        call c_f_pointer(from, letters, [c_strlen(from)])
        allocate (character(size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function

    ! Opens a model file, a checkpoint or a run directory.
    subroutine dtrain_open(predictor, path, status)
        type(dtrain_predictor), intent(inout) :: predictor
        character(*), intent(in) :: path
        integer, intent(out) :: status
        call dtrain_close(predictor) ! of another model
        status = dt_predictor_open(trim(path) // c_null_char, predictor%handle)
    end subroutine

    subroutine dtrain_close(predictor)
        type(dtrain_predictor), intent(inout) :: predictor
        refusal = ''
        call dt_predictor_close(predictor%handle)
        predictor%handle = c_null_ptr
    end subroutine

    ! Returns the numbers per row; 0 if no model is open.
    integer function dtrain_features(predictor)
        type(dtrain_predictor), intent(in) :: predictor
        dtrain_features = 0
        if (c_associated(predictor%handle)) dtrain_features = dt_predictor_features(predictor%handle)
    end function

    ! Returns the numbers per answer: a probability for each class, or a value for each target; 0
    ! if no model is open.
    integer function dtrain_width(predictor)
        type(dtrain_predictor), intent(in) :: predictor
        dtrain_width = 0
        if (c_associated(predictor%handle)) dtrain_width = dt_predictor_width(predictor%handle)
    end function

    ! Predicts rows x(features, rows) into answer(width, rows).
    subroutine dtrain_predict(predictor, x, answer, status)
        type(dtrain_predictor), intent(in) :: predictor
        real(c_float), intent(in), contiguous :: x(:, :)
        real(c_float), intent(out), contiguous :: answer(:, :)
        integer, intent(out) :: status
        logical :: fit
        call check(c_associated(predictor%handle), 'dtrain_predict: no model is open', status)
        if (status /= 0) return
        fit = size(x, 1) == dtrain_features(predictor) .and. size(answer, 1) == dtrain_width(predictor)
        fit = fit .and. size(answer, 2, c_int64_t) == size(x, 2, c_int64_t)
        call check(fit, 'dtrain_predict: expected x(features, rows) and answer(width, rows) of the model', status)
        if (status /= 0) return
        status = dt_predictor_rows(predictor%handle, x, size(x, 2, c_size_t), answer, c_null_ptr)
    end subroutine
end module
