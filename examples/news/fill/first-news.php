<?php

/**
 * News 1, in the order of the table's columns.
 *
 * Without comments its page is 2,042 bytes long, like that of the report from 2011, whose figures
 * the benchmarks repeat. If you change the layout, adjust this text.
 */

declare(strict_types=1);

return [
    1, 'Trade', 'This newspaper is now on the web',
    'From today the Post can be read without getting ink on one’s fingers.',
    "As of this morning the Wrackham Post has a page on the web, and you are reading it. It is small, like the paper, and comes up quickly, like the boy who brings it.\n\n"
    . "It is made in the same room on Quay Street, by the same seven people. What is new will stand here first; what is printed will have been read twice. The tide table stays on the back page, where the fish is wrapped in it.\n\n"
    . "“I was against it,” says Samuel Ortiz, who has set the paper for forty years. “Then they showed me that one can correct a misprint after it has been printed.” He has asked for a bell that rings each time somebody reads a page, and was told that it would keep the street awake. Ours is a small town, and it likes to know what is going on.\n\n"
    . 'Readers may write below each article. We ask them to be as kind here as they are at the counter, and as brief.',
    'Hannah Reed', '2011-03-14 06:00:00',
];
