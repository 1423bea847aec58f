! What the Fortran module refuses, and what it says of a run that was stopped.   host RUN_DIR
program host
    use mpi
    use dtrain
    use, intrinsic :: iso_c_binding
    implicit none
    interface
        subroutine dt_stop_request() bind(c)
        end subroutine
    end interface
    character(*), parameter :: nl = new_line('a')
    real(c_float) :: x(2, 100), y(1, 100), answer(1, 100)
    type(dtrain_predictor) :: model
    character(1000) :: run_dir
    character(:), allocatable :: settings
    integer :: error, status, i
    call get_command_argument(1, run_dir)
    call MPI_Init(error)
    do i = 1, 100
        x(:, i) = [sin(real(i)), cos(1.7 * real(i))]
    end do
    y(1, :) = x(1, :) * x(2, :)
    settings = 'run.dir=' // trim(run_dir) // nl // 'model.task=regress' // nl // 'train.epochs=1'
    call dtrain_train(MPI_COMM_WORLD, settings, x, status, target=y(:, 1:50))
    call expect(status == dtrain_usage .and. index(dtrain_error(), 'target') > 0, 'targets of half the rows')
    call dt_stop_request()
    call dtrain_train(MPI_COMM_WORLD, settings, x, status, target=y)
    call expect(status == dtrain_stopped, 'a stop')
    call dtrain_train(MPI_COMM_WORLD, settings, x, status, target=y)
    call expect(status == 0, 'a training')
    call dtrain_predict(model, x, answer, status)
    call expect(status == dtrain_usage .and. dtrain_features(model) == 0, 'no model')
    call dtrain_open(model, run_dir, status)
    call dtrain_open(model, run_dir, status) ! the first is closed
    call expect(status == 0 .and. dtrain_features(model) == 2, 'a model')
    call dtrain_predict(model, x(1:1, :), answer, status)
    call expect(status == dtrain_usage, 'rows of one number')
    call dtrain_predict(model, x, answer(:, 1:99), status)
    call expect(status == dtrain_usage, 'answers of fewer rows')
    call dtrain_predict(model, x, answer, status)
    call expect(status == 0, 'answers')
    call dtrain_close(model)
    call MPI_Finalize(error)
contains
    subroutine expect(is_so, what)
        logical, intent(in) :: is_so
        character(*), intent(in) :: what
        if (is_so) return
        print '(a)', what // ': ' // dtrain_error()
        error stop 1
    end subroutine
end program
