/* Bugs for the scheduler test to find: compiled with -DDT_PLANT=PLANT_NAME, the slot protocol goes
 * wrong there. The library is built without. */
#ifndef DT_COMM_PLANT_H
#define DT_COMM_PLANT_H

enum dt__plant {
    PLANT_NONE,
    PLANT_MISSING_FLUSH, /* the doorbell rings while the payload is under way */
    PLANT_EARLY_ACK,     /* a slot is given back before its gradient was read */
    PLANT_VERSION_WRAP,  /* the reader compares numbers that have wrapped round */
    PLANT_LOST_DOORBELL, /* the bank acknowledges what it has not seen */
    PLANT_EARLY_PUBLISH, /* the number is out before the weights are */
    PLANT_LATE_PIN,      /* the reader pins what it has checked, not what it will check */
    PLANT_DEAF_STOP,     /* the leg ends without those that were under way */
    PLANT_STALE_FLOOR,   /* the clock's floor is raised before the weights are out */
    PLANT_HELD,          /* a reader forgets to let go of the bank */
    PLANT_NO_LOCK,       /* two act for the bank at once */
    PLANT_HASTY_REST,    /* the bank does not wait for the one who is at it */
    PLANT_EARLY_LEAVE,   /* a worker leaves while its gradients wait */
};

#ifndef DT_PLANT
#define DT_PLANT PLANT_NONE
#endif
#define DT__PLANTED(name) (DT_PLANT == PLANT_##name)

#endif
