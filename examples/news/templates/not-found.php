<?php

/**
 * For an address at which there is nothing.
 */

declare(strict_types=1);

?>
<h1>Not in this paper</h1>
<p class="summary">There is nothing at this address, or not any more, or not yet.</p>
<p><a class="button" href="/">To the front page</a></p>
