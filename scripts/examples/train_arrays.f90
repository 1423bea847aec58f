! Trains a network on rows in memory, inside an MPI program, and answers some:
!     mpifort $(pkg-config --variable=prefix dtrain)/include/dtrain/dtrain.f90 train_arrays.f90 \
!         $(pkg-config --libs dtrain) -o train_arrays
!     mpirun -np 3 ./train_arrays RUN_DIR
! What is to be learned is the product of two numbers.
program train_arrays
    use mpi
    use dtrain
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: rows = 4000
    character, parameter :: nl = new_line('a')
    real(c_float) :: x(2, rows), y(1, rows), question(2, 1), answer(1, 1)
    type(dtrain_predictor) :: model
    character(1000) :: run_dir
    integer :: rank, provided, error, status, i

    call get_command_argument(1, run_dir)
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    do i = 1, rows ! every rank has the same
        x(:, i) = [sin(real(i)), cos(1.7 * real(i))]
    end do
    y(1, :) = x(1, :) * x(2, :)
    call dtrain_train(MPI_COMM_WORLD, 'run.dir=' // trim(run_dir) // nl // 'model.task=regress' // nl // &
        'model.hidden=32,32' // nl // 'model.activation=tanh' // nl // 'train.optimizer=adam' // nl // &
        'train.lr=0.01' // nl // 'train.batch=100' // nl // 'train.epochs=40', x, status, target=y)
    if (status == 0 .and. rank == 0) then
        call dtrain_open(model, run_dir, status)
        question(:, 1) = [0.5, -0.5]
        if (status == 0) call dtrain_predict(model, question, answer, status)
        if (status == 0) print '(a, f8.4)', '0.5 * -0.5 is about', answer(1, 1)
        call dtrain_close(model)
    end if
    if (status /= 0 .and. rank == 0) print '(a)', dtrain_error()
    call MPI_Finalize(error)
    if (status /= 0) stop 1
end program
